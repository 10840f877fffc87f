package command

import (
	"encoding/json"
	"log/slog"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/serverlog"
)

const (
	// redactName is the parameter that keeps clients' data out of the log and out of what is profiled.
	redactName = "redactClientLogData"
	// redactedText stands where a value stood.
	redactedText = "###"
)

// AddRedaction enters the parameter. set is told of it.
func AddRedaction(r *parameter.Registry, set func(on bool)) {
	on := parameter.NewBool(r, redactName, parameter.Both, false)
	p := r.Lookup(redactName)
	take, parse := p.Set, p.Parse
	p.Set = func(v bson.Value) error {
		err := take(v)
		set(on.Get())
		return err
	}
	p.Parse = func(text string) error {
		err := parse(text)
		set(on.Get())
		return err
	}
}

// redact is a document without its values: fields stay, and how they are nested.
func redact(d bson.Doc) bson.Doc { return redacted(d.Value()).Doc() }

func redacted(v bson.Value) bson.Value {
	if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
		return bson.String(redactedText)
	}
	b := bson.Build()
	for it := v.Doc().Iter(); it.Next(); {
		b.Value(it.Key(), redacted(it.Value()))
	}
	return bson.Value{Type: v.Type, Data: b.Doc()}
}

// loggedDoc is a document for the log.
func loggedDoc(d bson.Doc) slog.LogValuer {
	return serverlog.ClientOr(loggedDocument(d), func() any { return loggedDocument(redact(d)) })
}

// loggedDocument is a document as a value in the log, which has as much of it as it takes.
type loggedDocument bson.Doc

// MarshalJSON is json.Marshaler's, for other logs.
func (d loggedDocument) MarshalJSON() ([]byte, error) { return bson.Doc(d).JSON(), nil }

// JSONWithin is serverlog.Long's.
func (d loggedDocument) JSONWithin(most int) (text, truncated json.RawMessage, size int) {
	text, without := bson.Doc(d).JSONWithin(most)
	if without != nil {
		truncated = without.JSON()
	}
	return text, truncated, len(d)
}
