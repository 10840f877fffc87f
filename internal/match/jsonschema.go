package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// JSONSchema matches documents that are valid under a schema.
type JSONSchema struct{ Source bson.Doc }

func (n *JSONSchema) match(run, subject) (bool, error) {
	return false, mongoerr.New(mongoerr.NotImplemented, "$jsonSchema is not implemented yet")
}
func (n *JSONSchema) test(c run, _ bson.Value) (bool, error) { return n.match(c, subject{}) }
func (n *JSONSchema) print(b *bson.Builder)                  { b.Document("$jsonSchema", n.Source) }

func parseJSONSchema(p *parsing, arg bson.Value) (Node, error) {
	return nil, mongoerr.New(mongoerr.NotImplemented, "$jsonSchema is not implemented yet")
}
