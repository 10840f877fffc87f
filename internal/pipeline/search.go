package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Search is $search, $searchMeta or $vectorSearch. It is refused when it runs, as by a server without a search process.
type Search struct{ written }

// Refusal is what such a server says of the stage.
func (s *Search) Refusal() error {
	if s.name == "$listSearchIndexes" {
		return ErrNoSearchIndexes()
	}
	return noSearch("Using $search and $vectorSearch aggregation stages")
}

// ErrNoSearchIndexes is what it says of the search process's indexes.
func ErrNoSearchIndexes() error {
	return noSearch("Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage")
}

func noSearch(using string) error {
	return mongoerr.New(mongoerr.SearchNotEnabled, "%s requires additional configuration. Please connect to Atlas or an AtlasCLI local deployment to enable. "+
		"For more information on how to connect, see https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs.", using)
}

func parseSearch(p *parsing, arg bson.Value) ([]Stage, error) {
	switch arg.Type {
	case bson.TypeObject:
	case bson.TypeArray:
		return nil, mongoerr.New(mongoerr.FailedToParse, "the search stage specification must be an object, but found array")
	default:
		return nil, mongoerr.New(10065, "invalid parameter: expected an object ($search)")
	}
	return one(&Search{written{p.name, arg}}), nil
}

func (s *Search) needs(*Dependencies) bool { return false }

func parseListSearchIndexes(_ *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "The $listSearchIndexes stage specification must be an object. Found: %s", arg.Type)
	}
	return one(&Search{written{"$listSearchIndexes", arg}}), nil
}
