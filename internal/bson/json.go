package bson

import (
	"encoding/json"
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
