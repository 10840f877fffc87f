package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func notYet(name string) func(*parsing, bson.Value) ([]Stage, error) {
	return func(*parsing, bson.Value) ([]Stage, error) {
		return nil, mongoerr.New(mongoerr.NotImplemented, "%s is not implemented yet", name)
	}
}

func parseDensify(p *parsing, v bson.Value) ([]Stage, error) { return notYet("$densify")(p, v) }
func parseFill(p *parsing, v bson.Value) ([]Stage, error)    { return notYet("$fill")(p, v) }
func parseGeoNear(p *parsing, v bson.Value) ([]Stage, error) { return notYet("$geoNear")(p, v) }
func parseSetWindowFields(p *parsing, v bson.Value) ([]Stage, error) {
	return notYet("$setWindowFields")(p, v)
}
func parseRankFusion(p *parsing, v bson.Value) ([]Stage, error)  { return notYet("$rankFusion")(p, v) }
func parseScoreFusion(p *parsing, v bson.Value) ([]Stage, error) { return notYet("$scoreFusion")(p, v) }
