package planner

import "github.com/ebbdb/ebb/internal/bson"

// IDHack looks up the one document with the given _id.
type IDHack struct{ ID bson.Value }

// Stage implements Node.
func (*IDHack) Stage() string { return "IDHACK" }

// Children implements Node.
func (*IDHack) Children() []Node { return nil }

// Describe implements Node.
func (*IDHack) Describe(*bson.Builder) {}
