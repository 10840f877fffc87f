package pipeline

import (
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Expiring is $ebbTTL: the documents of a collection in the order of their deadlines, each with its own.
type Expiring struct {
	written
	// From and Until bound the deadlines: after From, and at Until at the latest.
	From, Until int64
	// Index is the TTL index whose deadlines count; "" for the earliest of all rules.
	Index string
}

func (s *Expiring) needs(*Dependencies) bool { return false }

var aDate = []bson.Type{bson.TypeDate}

func parseExpiring(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "$ebbTTL options must be specified in an object, but found: %s", arg.Type)
	}
	var from, until, index bson.Value
	if err := readStrict("$ebbTTL", arg.Doc(), want{name: "from", to: &from, types: aDate}, want{name: "until", to: &until, types: aDate},
		want{name: "index", to: &index, types: aString}); err != nil {
		return nil, err
	}
	switch {
	case p.View || p.inside != "":
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "$ebbTTL is for an aggregation of its own, not for a view or within a stage")
	case p.NS.Coll == "":
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "$ebbTTL needs a collection: {aggregate: 1} is not valid for it")
	}
	s := &Expiring{written: written{"$ebbTTL", arg}, From: math.MinInt64, Until: math.MaxInt64}
	if from.Type == bson.TypeDate {
		s.From = from.Millis()
	}
	if until.Type == bson.TypeDate {
		s.Until = until.Millis()
	}
	if index.Type == bson.TypeString {
		s.Index = strings.Clone(index.Str())
	}
	return one(s), nil
}

// Expiring is the stage that the pipeline begins with if it gives documents in the order of their deadlines; nil otherwise.
func (p *Pipeline) Expiring() *Expiring {
	s, _ := p.First().(*Expiring)
	return s
}
