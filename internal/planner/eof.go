package planner

import "github.com/ebbdb/ebb/internal/bson"

// EOF gives no document: the query contradicts itself, or there is no collection.
type EOF struct{}

// Stage implements Node.
func (*EOF) Stage() string { return "EOF" }

// Children implements Node.
func (*EOF) Children() []Node { return nil }

// Describe implements Node.
func (*EOF) Describe(*bson.Builder) {}
