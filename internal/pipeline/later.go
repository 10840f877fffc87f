package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func notYet(name string) error {
	return mongoerr.New(mongoerr.NotImplemented, "%s is not implemented yet", name)
}

func parseScoreFusion(*parsing, bson.Value) ([]Stage, error) { return nil, notYet("$scoreFusion") }
