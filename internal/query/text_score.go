package query

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/projection"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// textScore is the metadata that a $text gives documents.
const textScore = "textScore"

func sortsByScore(order *sortpattern.Pattern) bool {
	return order != nil && slices.Contains(order.Meta(), textScore)
}

func readsScore(p *projection.Projection) bool {
	return p != nil && slices.Contains(p.Dependencies().Meta, textScore)
}

// scored says whether the score of a $text is asked for.
func (p *prepared) scored() bool { return sortsByScore(p.order) || readsScore(p.project) }

// noTextScore is the error of a query that asks for scores and has no $text.
func noTextScore() error {
	return mongoerr.New(40218, "query requires text score metadata, but it is not available")
}

// metadata is what is known of a document that a write has found, besides its fields.
func metadata(d *match.Details) func(name string) bson.Value {
	return func(name string) bson.Value {
		if name == textScore && d != nil && d.Scored {
			return bson.Double(d.Score)
		}
		return bson.Missing
	}
}
