package bson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// JSON is d as relaxed extended JSON, one line. It is for logs: it costs far more than walking the document.
func (d Doc) JSON() json.RawMessage {
	text, err := bson.MarshalExtJSON(bson.Raw(d), false, false)
	if err != nil {
		text, _ = json.Marshal(strings.ToValidUTF8(d.String(), "")) // a string always has a form
	}
	return text
}

// JSONWithin is d as JSON in about most bytes, cut as mongod cuts it for its log: the first value that would go beyond is left out with
// all that comes after it. truncated is nil where all is there, or says what was left out first: {type, size} under its path.
func (d Doc) JSONWithin(most int) (text json.RawMessage, truncated Doc) {
	if len(d) <= most {
		if text = d.JSON(); len(text) <= most {
			return text, nil
		}
	}
	return appendJSONWithin(nil, d.Value(), most)
}

func appendJSONWithin(b []byte, v Value, most int) (text []byte, truncated Doc) {
	begin, end := byte('{'), byte('}')
	if v.Type == TypeArray {
		begin, end = '[', ']'
	}
	b = append(b, begin)
	for it := v.Doc().Iter(); truncated == nil && it.Next(); {
		before, value := len(b), it.Value()
		if b[before-1] != begin {
			b = append(b, ',')
		}
		b = append(b, jsonField(v.Type, it.Key(), value)...)
		var within Doc
		switch {
		case len(b) > most:
			b = b[:before]
			within = Build().String("type", value.Type.String()).Int64("size", int64(len(value.Data))).Doc()
		case value.Type == TypeObject || value.Type == TypeArray:
			b, within = appendJSONWithin(b, value, most)
		}
		if within != nil {
			truncated = Build().Document(string(appendCut(nil, it.Key(), maxShownString, shownString)), within).Doc()
		}
	}
	return append(b, end), truncated
}

// jsonField is a field of a document, "key":value, or an element of an array, in JSON. Of what has fields itself it is what stands before them.
func jsonField(in Type, key string, v Value) []byte {
	nested := v.Type == TypeObject || v.Type == TypeArray
	if nested {
		v = Null
	}
	if in == TypeArray {
		key = ""
	}
	text, err := bson.MarshalExtJSON(bson.Raw(Build().Value(key, v).Doc()), false, false)
	if err != nil {
		text, _ = json.Marshal(map[string]string{key: strings.ToValidUTF8(v.String(), "")}) // strings always have a form
	}
	text = text[1 : len(text)-1]
	if in == TypeArray {
		text = text[len(`"":`):]
	}
	if nested {
		text = bytes.TrimSuffix(text, []byte("null"))
	}
	return text
}

// CanonicalJSON is d as canonical extended JSON, of which ParseJSON makes d again. It is for people's programs, not for paths that run
// once a document.
func (d Doc) CanonicalJSON() ([]byte, error) { return bson.MarshalExtJSON(bson.Raw(d), true, false) }

// ParseJSON reads a document in extended JSON, canonical, relaxed or mixed.
func ParseJSON(text []byte) (Doc, error) {
	if !json.Valid(text) { // the driver reads the first document, whatever is behind it
		return nil, errors.New("it is no JSON document")
	}
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON(text, false, &raw); err != nil {
		return nil, err
	}
	if err := Validate(raw, MaxDepth+1); err != nil { // below a command, which is a level itself
		return nil, err
	}
	return Doc(raw), nil
}
