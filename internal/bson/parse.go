package bson

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Parse reads one value in the shell's notation, as Text writes it: names may be unquoted, strings stand in single or
// double quotes, whole numbers are ints (longs when they do not fit), numbers with a point or exponent are doubles, and
// the shell's constructors (NumberLong, NumberDecimal, ISODate, ObjectId, BinData, UUID, Timestamp, Code …) work. It
// also reads "missing". Test cases and command lines use it; nothing that comes over the wire does.
func Parse(text string) (Value, error) {
	p := &parser{in: text}
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	if p.space(); p.at < len(p.in) {
		return Value{}, p.errorf("unexpected %q behind the value", p.in[p.at:])
	}
	return v, nil
}

// ParseDoc is Parse for a text that must be a document.
func ParseDoc(text string) (Doc, error) {
	v, err := Parse(text)
	if err == nil && v.Type != TypeObject {
		err = fmt.Errorf("%s is no document", text)
	}
	return v.Doc(), err
}

// MustParse is Parse for texts that are known to be right; it panics on others.
func MustParse(text string) Value {
	v, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return v
}

// MustDoc is ParseDoc for texts that are known to be right; it panics on others.
func MustDoc(text string) Doc {
	d, err := ParseDoc(text)
	if err != nil {
		panic(err)
	}
	return d
}

type parser struct {
	in string
	at int
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("at byte %d: "+format, append([]any{p.at}, args...)...)
}

func (p *parser) space() {
	for p.at < len(p.in) && strings.IndexByte(" \t\r\n", p.in[p.at]) >= 0 {
		p.at++
	}
}

// peek skips space and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	p.space()
	if p.at == len(p.in) {
		return 0
	}
	return p.in[p.at]
}

func (p *parser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(c byte) error {
	if !p.take(c) {
		return p.errorf("expected %q", c)
	}
	return nil
}

const maxParseDepth = 1000

func (p *parser) value(depth int) (Value, error) {
	if depth > maxParseDepth {
		return Value{}, p.errorf("nested deeper than %d", maxParseDepth)
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"' || c == '\'':
		s, err := p.quoted()
		return String(s), err
	case c == '/':
		return p.regex()
	case c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9':
		return p.number()
	case wordByte(c):
		return p.word(depth)
	}
	return Value{}, p.errorf("expected a value")
}

func (p *parser) object(depth int) (Value, error) {
	p.at++
	b := Build()
	for !p.take('}') {
		key, err := p.key()
		if err != nil {
			return Value{}, err
		}
		if err := p.expect(':'); err != nil {
			return Value{}, err
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		b.Value(key, v)
		if !p.take(',') && p.peek() != '}' {
			return Value{}, p.errorf("expected , or }")
		}
	}
	return b.Doc().Value(), nil
}

func (p *parser) key() (string, error) {
	if c := p.peek(); c == '"' || c == '\'' {
		return p.quoted()
	}
	start := p.at
	for p.at < len(p.in) && (wordByte(p.in[p.at]) || p.in[p.at] == '.') {
		p.at++
	}
	if start == p.at {
		return "", p.errorf("expected a field name")
	}
	return p.in[start:p.at], nil
}

func (p *parser) array(depth int) (Value, error) {
	p.at++
	var vs []Value
	for !p.take(']') {
		v, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		vs = append(vs, v)
		if !p.take(',') && p.peek() != ']' {
			return Value{}, p.errorf("expected , or ]")
		}
	}
	return ArrayOf(vs...), nil
}

func (p *parser) quoted() (string, error) {
	q := p.in[p.at]
	p.at++
	var sb strings.Builder
	for rest := p.in[p.at:]; rest != ""; rest = p.in[p.at:] {
		if rest[0] == q {
			p.at++
			return sb.String(), nil
		}
		if strings.HasPrefix(rest, `\/`) {
			sb.WriteByte('/')
			p.at += 2
			continue
		}
		if rest[0] != '\\' {
			sb.WriteByte(rest[0])
			p.at++
			continue
		}
		r, multi, tail, err := strconv.UnquoteChar(rest, q)
		if err != nil {
			return "", p.errorf("bad escape in string")
		}
		if multi {
			sb.WriteRune(r)
		} else {
			sb.WriteByte(byte(r))
		}
		p.at += len(rest) - len(tail)
	}
	return "", p.errorf("string not closed")
}

func (p *parser) regex() (Value, error) {
	p.at++
	start := p.at
	for p.at < len(p.in) && p.in[p.at] != '/' {
		if p.in[p.at] == '\\' {
			p.at++
		}
		p.at++
	}
	if p.at >= len(p.in) {
		return Value{}, p.errorf("regular expression not closed")
	}
	pattern := strings.ReplaceAll(p.in[start:p.at], `\/`, "/")
	p.at++
	start = p.at
	for p.at < len(p.in) && p.in[p.at] >= 'a' && p.in[p.at] <= 'z' {
		p.at++
	}
	return Regex(pattern, p.in[start:p.at]), nil
}

func (p *parser) number() (Value, error) {
	start := p.at
	for p.at < len(p.in) && strings.IndexByte("+-.0123456789eE", p.in[p.at]) >= 0 {
		p.at++
	}
	text := p.in[start:p.at]
	if text == "-" && strings.HasPrefix(p.in[p.at:], "Infinity") {
		p.at += len("Infinity")
		return Double(math.Inf(-1)), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n >= math.MinInt32 && n <= math.MaxInt32 {
			return Int32(int32(n)), nil
		}
		return Int64(n), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Value{}, p.errorf("bad number %q", text)
	}
	return Double(f), nil
}

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

func (p *parser) word(depth int) (Value, error) {
	start := p.at
	for p.at < len(p.in) && wordByte(p.in[p.at]) {
		p.at++
	}
	w := p.in[start:p.at]
	if w == "new" {
		if !wordByte(p.peek()) {
			return Value{}, p.errorf("expected a constructor behind new")
		}
		return p.word(depth)
	}
	switch w {
	case "true":
		return True, nil
	case "false":
		return False, nil
	case "null":
		return Null, nil
	case "undefined":
		return Undefined, nil
	case "missing":
		return Missing, nil
	case "NaN":
		return Double(math.NaN()), nil
	case "Infinity":
		return Double(math.Inf(1)), nil
	case "MinKey", "MaxKey":
		if p.take('(') {
			if err := p.expect(')'); err != nil {
				return Value{}, err
			}
		}
		if w == "MinKey" {
			return MinKey, nil
		}
		return MaxKey, nil
	}
	if err := p.expect('('); err != nil {
		return Value{}, p.errorf("unknown word %q", w)
	}
	var args []Value
	for !p.take(')') {
		v, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		args = append(args, v)
		if !p.take(',') && p.peek() != ')' {
			return Value{}, p.errorf("expected , or )")
		}
	}
	v, err := construct(w, args)
	if err != nil {
		return Value{}, p.errorf("%s: %v", w, err)
	}
	return v, nil
}

func construct(name string, args []Value) (Value, error) {
	text := func(i int) string {
		if i < len(args) && args[i].Type == TypeString {
			return args[i].Str()
		}
		return ""
	}
	num := func(i int) int64 {
		if i < len(args) && args[i].Type == TypeString {
			n, _ := strconv.ParseInt(args[i].Str(), 10, 64)
			return n
		}
		if i < len(args) && args[i].IsNumber() {
			return args[i].TruncInt64()
		}
		return 0
	}
	switch name {
	case "NumberInt", "Int32":
		return Int32(int32(num(0))), nil
	case "NumberLong", "Long":
		return Int64(num(0)), nil
	case "Double":
		return Double(args[0].AsDouble()), nil
	case "NumberDecimal", "Decimal128":
		d, err := ParseDecimal128(text(0))
		return Decimal(d), err
	case "ISODate", "Date":
		return constructDate(args)
	case "Timestamp":
		return Timestamp(uint32(num(0)), uint32(num(1))), nil
	case "ObjectId":
		b, err := hex.DecodeString(text(0))
		if err != nil || len(b) != 12 {
			return Value{}, fmt.Errorf("needs 24 hexadecimal digits")
		}
		return ObjectID([12]byte(b)), nil
	case "UUID":
		b, err := hex.DecodeString(strings.ReplaceAll(text(0), "-", ""))
		return Binary(4, b), err
	case "BinData":
		b, err := base64.StdEncoding.DecodeString(text(1))
		if num(0) == 2 {
			b = append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
		}
		return Binary(byte(num(0)), b), err
	case "HexData":
		b, err := hex.DecodeString(text(1))
		return Binary(byte(num(0)), b), err
	case "Symbol":
		return Symbol(text(0)), nil
	case "RegExp":
		return Regex(text(0), text(1)), nil
	case "Code":
		if len(args) == 2 && args[1].Type == TypeObject {
			return CodeWithScope(text(0), args[1].Doc()), nil
		}
		return Code(text(0)), nil
	case "DBPointer":
		if len(args) != 2 || args[1].Type != TypeObjectID {
			return Value{}, fmt.Errorf("needs a namespace and an ObjectId")
		}
		return Value{TypeDBPointer, append(appendString(nil, text(0)), args[1].Data...)}, nil
	case "DBRef":
		return Build().String("$ref", text(0)).Value("$id", args[1]).Doc().Value(), nil
	}
	return Value{}, fmt.Errorf("no such constructor")
}

func constructDate(args []Value) (Value, error) {
	if len(args) != 1 {
		return Value{}, fmt.Errorf("needs one argument")
	}
	if args[0].IsNumber() {
		return Date(args[0].TruncInt64()), nil
	}
	if args[0].Type != TypeString {
		return Value{}, fmt.Errorf("needs a number or a string")
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999", "2006-01-02", "2006-01-02 15:04:05"} {
		if t, err := time.Parse(layout, args[0].Str()); err == nil {
			return Date(t.UnixMilli()), nil
		}
	}
	return Value{}, fmt.Errorf("no date: %q", args[0].Str())
}

// CodeWithScope is JavaScript code with the values of its free variables.
func CodeWithScope(code string, scope Doc) Value {
	b := appendString([]byte{0, 0, 0, 0}, code)
	b = append(b, scope...)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return Value{TypeCodeWithScope, b}
}
