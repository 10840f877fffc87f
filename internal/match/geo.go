package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func geoOperators() []Operator {
	return nil
}

// GeoWithin is.
type GeoWithin struct{ Path fieldpath.Path }

// GeoIntersects is.
type GeoIntersects struct{ Path fieldpath.Path }

// GeoNear is.
type GeoNear struct{ Path fieldpath.Path }

func (n *GeoNear) match(run, subject) (bool, error) {
	return false, mongoerr.New(mongoerr.NotImplemented, "geo is not implemented yet")
}
func (n *GeoNear) test(c run, _ bson.Value) (bool, error)       { return n.match(c, subject{}) }
func (n *GeoNear) print(b *bson.Builder)                        {}
func (n *GeoWithin) match(run, subject) (bool, error)           { return false, nil }
func (n *GeoWithin) test(c run, _ bson.Value) (bool, error)     { return n.match(c, subject{}) }
func (n *GeoWithin) print(b *bson.Builder)                      {}
func (n *GeoIntersects) match(run, subject) (bool, error)       { return false, nil }
func (n *GeoIntersects) test(c run, _ bson.Value) (bool, error) { return n.match(c, subject{}) }
func (n *GeoIntersects) print(b *bson.Builder)                  {}

func (p *parsing) near(path fieldpath.Path, d bson.Doc) (Node, error) { return nil, nil }
