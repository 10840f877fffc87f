package bson

import (
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
