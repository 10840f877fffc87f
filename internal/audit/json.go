package audit

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// dateLayout is that of dates, in UTC.
const dateLayout = "2006-01-02T15:04:05.000-07:00"

// appendJSON appends a value as extended JSON of version 1, strictly, which is what MongoDB's audit log is in.
func appendJSON(b []byte, v bson.Value) []byte {
	switch v.Type {
	case bson.TypeString:
		return appendQuoted(b, v.Str())
	case bson.TypeInt32:
		return strconv.AppendInt(b, int64(v.Int32()), 10)
	case bson.TypeBool:
		return strconv.AppendBool(b, v.Bool())
	case bson.TypeNull:
		return append(b, "null"...)
	case bson.TypeObject, bson.TypeArray:
		return appendNested(b, v)
	case bson.TypeDouble:
		if f := v.Double(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			text, _ := json.Marshal(f) // which is finite
			return append(b, text...)
		}
	}
	return appendExtended(b, v)
}

func appendNested(b []byte, v bson.Value) []byte {
	open, end, list := byte('{'), byte('}'), v.Type == bson.TypeArray
	if list {
		open, end = '[', ']'
	}
	b = append(b, open)
	first := true
	for it := v.Doc().Iter(); it.Next(); first = false {
		if !first {
			b = append(b, ',')
		}
		b = append(b, ' ')
		if !list {
			b = append(appendQuoted(b, it.Key()), " : "...)
		}
		b = appendJSON(b, it.Value())
	}
	if !first {
		b = append(b, ' ')
	}
	return append(b, end)
}

// appendExtended appends what plain JSON has no form for.
func appendExtended(b []byte, v bson.Value) []byte {
	switch v.Type {
	case bson.TypeDate:
		if at := v.Time(); at.Year() >= 1 && at.Year() <= 9999 {
			return appendPairs(b, "$date", at.Format(dateLayout))
		}
		return append(append(append(b, `{ "$date" : `...), appendPairs(nil, "$numberLong", strconv.FormatInt(v.Millis(), 10))...), " }"...)
	case bson.TypeInt64:
		return appendPairs(b, "$numberLong", strconv.FormatInt(v.Int64(), 10))
	case bson.TypeBinary:
		subtype, data := v.Binary()
		return appendPairs(b, "$binary", base64.StdEncoding.EncodeToString(data), "$type", hex.EncodeToString([]byte{subtype}))
	case bson.TypeObjectID:
		id := v.ObjectID()
		return appendPairs(b, "$oid", hex.EncodeToString(id[:]))
	}
	whole := bson.Build().Value("v", v).Doc().JSON() // what is rare, in the form of version 2
	return append(b, strings.TrimSuffix(strings.TrimPrefix(string(whole), `{"v":`), "}")...)
}

// appendPairs appends a document of strings.
func appendPairs(b []byte, pairs ...string) []byte {
	b = append(b, '{')
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(append(appendQuoted(append(b, ' '), pairs[i]), " : "...), pairs[i+1])
	}
	return append(b, " }"...)
}

// appendQuoted appends a string; what is no UTF-8 in it is replaced.
func appendQuoted(b []byte, s string) []byte {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a form
	return append(b, strings.TrimSuffix(text.String(), "\n")...)
}
