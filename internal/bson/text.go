package bson

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Text is v in the shell's typed notation, which Parse reads back: 1 is an int, 1.0 a double, NumberLong(1) a long.
func (v Value) Text() string { return string(appendText(nil, v, textTyped)) }

// Text is the document in the notation of Value.Text.
func (d Doc) Text() string { return d.Value().Text() }

// What is longer than this a message shows the beginning of.
const (
	maxShownString, shownString = 159, 150
	maxShownCode, shownCode     = 79, 70
	maxShownBinary, shownBinary = 80, 70
)

// String is v as MongoDB's messages show it, in which longs and ints look alike and long values are cut.
func (v Value) String() string { return string(appendText(nil, v, textMessage)) }

// String is the document as MongoDB's messages show it.
func (d Doc) String() string { return d.Value().String() }

// Computed is v as MongoDB's messages show what an expression has computed, unlike what a command says (String): no spaces within brackets, doubles of six
// digits, dates and ids without a function's name.
func (v Value) Computed() string { return string(appendText(nil, v, textComputed)) }

// Beginning is what String begins with, in at most most bytes. It looks no further into the document than it has to.
func (v Value) Beginning(most int) string {
	b := appendBeginning(nil, v, most)
	if len(b) <= most {
		return string(b)
	}
	return string(appendCut(nil, string(b), most, max(most-len("..."), 0)))
}

// appendBeginning is appendText of a message that leaves off when b is longer than most.
func appendBeginning(b []byte, v Value, most int) []byte {
	if v.Type != TypeObject && v.Type != TypeArray || v.Doc().IsEmpty() {
		return appendText(b, v, textMessage)
	}
	sep, end := "{ ", " }"
	if v.Type == TypeArray {
		sep, end = "[ ", " ]"
	}
	for it := v.Doc().Iter(); len(b) <= most && it.Next(); sep = ", " {
		b = append(b, sep...)
		if v.Type == TypeObject {
			b = append(append(b, it.Key()...), ": "...)
		}
		b = appendBeginning(b, it.Value(), most)
	}
	return append(b, end...)
}

type textStyle uint8

const (
	textTyped textStyle = iota
	textMessage
	textComputed
)

func appendText(b []byte, v Value, style textStyle) []byte {
	switch v.Type {
	case TypeObject:
		return appendTextDoc(b, v.Doc(), style)
	case TypeArray:
		return appendTextArray(b, v.Doc(), style)
	case TypeString:
		return appendQuoted(b, v.Str(), style)
	case TypeInt32:
		return strconv.AppendInt(b, int64(v.Int32()), 10)
	case TypeInt64:
		if style != textTyped {
			return strconv.AppendInt(b, v.Int64(), 10)
		}
		return append(strconv.AppendInt(append(b, "NumberLong("...), v.Int64(), 10), ')')
	case TypeDouble:
		return appendDouble(b, v.Double(), style)
	case TypeDecimal:
		if style != textTyped {
			return append(b, v.Decimal().String()...)
		}
		return append(append(append(b, `NumberDecimal("`...), v.Decimal().String()...), `")`...)
	case TypeBool:
		return strconv.AppendBool(b, v.Bool())
	case TypeDate:
		return appendDate(b, v.Millis(), style)
	case TypeTimestamp:
		t, i := v.Timestamp()
		b = strconv.AppendUint(append(b, "Timestamp("...), uint64(t), 10)
		return append(strconv.AppendUint(append(b, ", "...), uint64(i), 10), ')')
	}
	return appendTextRare(b, v, style)
}

func appendTextRare(b []byte, v Value, style textStyle) []byte {
	q := byte('"')
	if style != textTyped {
		q = '\''
	}
	switch v.Type {
	case TypeMissing:
		if style == textComputed {
			return append(b, "MISSING"...)
		}
		return append(b, "missing"...)
	case TypeNull:
		return append(b, "null"...)
	case TypeUndefined:
		return append(b, "undefined"...)
	case TypeMinKey:
		return append(b, "MinKey"...)
	case TypeMaxKey:
		return append(b, "MaxKey"...)
	case TypeObjectID:
		if style == textComputed {
			return hex.AppendEncode(b, v.Data)
		}
		b = append(append(b, "ObjectId("...), q)
		return append(append(append(b, hex.EncodeToString(v.Data)...), q), ')')
	case TypeBinary:
		return appendTextBinary(b, v, style)
	case TypeRegex:
		p, o := v.Regex()
		b = append(append(b, '/'), strings.ReplaceAll(p, "/", `\/`)...)
		return append(append(b, '/'), o...)
	case TypeSymbol:
		if style == textMessage {
			return appendQuoted(b, v.Str(), style)
		}
		return append(appendQuoted(append(b, "Symbol("...), v.Str(), style), ')')
	case TypeCode:
		if style == textMessage {
			return appendCut(b, v.Str(), maxShownCode, shownCode)
		}
		return append(appendQuoted(append(b, "Code("...), v.Str(), style), ')')
	case TypeCodeWithScope:
		c, s := v.CodeWithScope()
		if style == textMessage {
			b = append(append(b, "CodeWScope( "...), c...)
			return append(appendTextDoc(append(b, ", "...), s, style), ')')
		}
		name := "Code("
		if style == textComputed {
			name = "CodeWScope("
		}
		b = append(appendQuoted(append(b, name...), c, style), ", "...)
		return append(appendTextDoc(b, s, style), ')')
	case TypeDBPointer:
		ns, id := v.DBPointer()
		b = append(appendQuoted(append(b, "DBPointer("...), ns, style), ", ObjectId("...)
		return append(append(append(append(b, q), hex.EncodeToString(id[:])...), q), "))"...)
	}
	return append(b, "?"...)
}

func appendTextDoc(b []byte, d Doc, style textStyle) []byte {
	if d.IsEmpty() {
		return append(b, "{}"...)
	}
	sep, end := "{ ", " }"
	if style == textComputed {
		sep, end = "{", "}"
	}
	for it := d.Iter(); it.Next(); sep = ", " {
		b = append(b, sep...)
		if style == textTyped && !plainKey(it.Key()) {
			b = appendQuoted(b, it.Key(), style)
		} else {
			b = append(b, it.Key()...)
		}
		b = appendText(append(b, ": "...), it.Value(), style)
	}
	return append(b, end...)
}

func plainKey(k string) bool {
	for i := 0; i < len(k); i++ {
		c := k[i]
		if !(c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return k != ""
}

func appendTextArray(b []byte, d Doc, style textStyle) []byte {
	if d.IsEmpty() {
		return append(b, "[]"...)
	}
	sep, end := "[ ", " ]"
	if style == textComputed {
		sep, end = "[", "]"
	}
	for it := d.Iter(); it.Next(); sep = ", " {
		b = appendText(append(b, sep...), it.Value(), style)
	}
	return append(b, end...)
}

func appendQuoted(b []byte, s string, style textStyle) []byte {
	if style == textTyped {
		return strconv.AppendQuote(b, s)
	}
	return append(appendCut(append(b, '"'), s, maxShownString, shownString), '"')
}

// appendCut appends s, or where it is longer than most, about its first short bytes, none of a character's left out.
func appendCut(b []byte, s string, most, short int) []byte {
	if len(s) <= most {
		return append(b, s...)
	}
	for short > 0 && !utf8.RuneStart(s[short]) {
		short--
	}
	return append(append(b, s[:short]...), "..."...)
}

// Digits of a double in messages: of what a command says, and of what an expression has computed.
const (
	messageDigits  = 16
	computedDigits = 6
)

func appendDouble(b []byte, f float64, style textStyle) []byte {
	n := len(b)
	switch style {
	case textTyped:
		switch {
		case math.IsNaN(f):
			return append(b, "NaN"...)
		case math.IsInf(f, 1):
			return append(b, "Infinity"...)
		case math.IsInf(f, -1):
			return append(b, "-Infinity"...)
		}
		b = strconv.AppendFloat(b, f, 'g', -1, 64)
	case textMessage:
		if b = appendDigits(b, f, messageDigits); math.IsNaN(f) || math.IsInf(f, 0) {
			return b
		}
	default:
		return appendDigits(b, f, computedDigits)
	}
	if strings.ContainsAny(string(b[n:]), ".e") {
		return b
	}
	return append(b, ".0"...)
}

// appendDigits writes a double as C does by "%g" with so many digits.
func appendDigits(b []byte, f float64, digits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	return fmt.Appendf(b, "%.*g", digits, f)
}

func appendDate(b []byte, ms int64, style textStyle) []byte {
	if style == textComputed && ms >= minISO && ms <= maxISO {
		return time.UnixMilli(ms).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	}
	if style != textTyped {
		return append(strconv.AppendInt(append(b, "new Date("...), ms, 10), ')')
	}
	if ms < minISO || ms > maxISO {
		return append(strconv.AppendInt(append(b, "Date("...), ms, 10), ')')
	}
	t := time.UnixMilli(ms).UTC()
	layout := "2006-01-02T15:04:05Z"
	if ms%1000 != 0 {
		layout = "2006-01-02T15:04:05.000Z"
	}
	return append(t.AppendFormat(append(b, `ISODate("`...), layout), `")`...)
}

const (
	minISO = -62135596800000 // 0001-01-01
	maxISO = 253402300799999 // 9999-12-31T23:59:59.999
)

func appendTextBinary(b []byte, v Value, style textStyle) []byte {
	sub, data := v.Binary()
	if style == textComputed {
		b = append(strconv.AppendUint(append(b, "BinData("...), uint64(sub), 10), `, "`...)
		if len(data) > maxShownBinary {
			return append(append(b, strings.ToUpper(hex.EncodeToString(data[:shownBinary]))...), `...")`...)
		}
		return append(append(b, strings.ToUpper(hex.EncodeToString(data))...), `")`...)
	}
	if style == textMessage {
		if sub == 4 && len(data) == 16 {
			return append(append(append(b, `UUID("`...), uuidText(data)...), `")`...)
		}
		b = strconv.AppendUint(append(b, "BinData("...), uint64(sub), 10)
		if b = append(b, ", "...); len(data) > maxShownBinary {
			return append(append(b, strings.ToUpper(hex.EncodeToString(data[:shownBinary]))...), "...)"...)
		}
		return append(append(b, strings.ToUpper(hex.EncodeToString(data))...), ')')
	}
	b = strconv.AppendUint(append(b, "BinData("...), uint64(sub), 10)
	return append(append(append(b, `, "`...), base64.StdEncoding.EncodeToString(data)...), `")`...)
}

func uuidText(u []byte) string {
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
