package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Document is coll as the store keeps it:
//
//	{ id: long, db: string, coll: string, uuid: UUID, options: {…}, indexes: [ { id: long, form: int, spec: {…} }, … ], collatedIDs: true,
//	  order: { number: long, index: long }, graces: [ { index: long, at: Date, until: Date, asSleep: true }, … ] }
//
// collatedIDs and asSleep are there only when it is so, order only where records lie in the order of a TTL index, and graces only
// where there are any.
func (coll *Collection) Document() bson.Doc {
	b := bson.Build().Int64("id", int64(coll.ID))
	b.String("db", coll.NS.DB).String("coll", coll.NS.Coll).Binary("uuid", 4, coll.UUID[:])
	b.Document("options", coll.Options.Doc).Array("indexes")
	for i, d := range coll.Indexes {
		b.Object(bson.IndexKey(i)).Int64("id", int64(d.ID)).Int32("form", int32(d.Form)).Document("spec", d.Spec).End()
	}
	b.End()
	if coll.CollatedIDs {
		b.Bool("collatedIDs", true)
	}
	if o := coll.Order; o != nil {
		b.Object("order").Int64("number", int64(o.Number)).Int64("index", int64(o.Index))
		if o.Cell > 0 {
			b.Int64("cell", o.Cell)
		}
		b.End()
	}
	if len(coll.Graces) > 0 {
		coll.appendGraces(b)
	}
	return b.Doc()
}

func (coll *Collection) appendGraces(b *bson.Builder) {
	b.Array("graces")
	for i, id := range slices.Sorted(maps.Keys(coll.Graces)) {
		g := coll.Graces[id]
		b.Object(bson.IndexKey(i)).Int64("index", int64(id)).Date("at", g.At).Date("until", g.Until)
		if g.AsSleep {
			b.Bool("asSleep", true)
		}
		b.End()
	}
	b.End()
}

func loadGraces(v bson.Value) (map[uint32]policy.Grace, error) {
	if v.Type != bson.TypeArray {
		return nil, nil
	}
	graces := map[uint32]policy.Grace{}
	for it := v.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return nil, fmt.Errorf("a grace is a %s", it.Value().Type)
		}
		g := it.Value().Doc()
		index, at, until := g.Lookup("index"), g.Lookup("at"), g.Lookup("until")
		if index.Type != bson.TypeInt64 || at.Type != bson.TypeDate || until.Type != bson.TypeDate {
			return nil, fmt.Errorf("a grace lacks its index or times: %s", g)
		}
		graces[uint32(index.Int64())] = policy.Grace{At: at.Millis(), Until: until.Millis(), AsSleep: g.Lookup("asSleep").Truthy()}
	}
	return graces, nil
}

// maxDepth bounds the nesting of a stored entry: options and specifications within their limits, and our frame.
const maxDepth = 250

// Load reads what Document made; parser reads the indexes' specifications.
func Load(doc bson.Doc, parser *index.Parser) (*Collection, error) {
	if err := bson.Validate(doc, maxDepth); err != nil {
		return nil, fmt.Errorf("catalog: a collection's entry is broken: %w", err)
	}
	coll := &Collection{Options: ReadOptions(object(doc, "options"))}
	coll.NS = namespace.NS{DB: text(doc, "db"), Coll: text(doc, "coll")}
	id, uuid := doc.Lookup("id"), doc.Lookup("uuid")
	if coll.NS.DB == "" || coll.NS.Coll == "" || id.Type != bson.TypeInt64 || uuid.Type != bson.TypeBinary {
		return nil, fmt.Errorf("catalog: a collection's entry lacks its name, number or uuid: %s", doc)
	}
	coll.ID = uint32(id.Int64())
	coll.CollatedIDs = doc.Lookup("collatedIDs").Truthy()
	if o := object(doc, "order"); o != nil {
		coll.Order = &Order{Number: uint32(o.Lookup("number").Int64()), Index: uint32(o.Lookup("index").Int64())}
		if cell := o.Lookup("cell"); cell.Type == bson.TypeInt64 {
			coll.Order.Cell = max(cell.Int64(), 0)
		}
	}
	var err error
	if coll.Graces, err = loadGraces(doc.Lookup("graces")); err != nil {
		return nil, fmt.Errorf("catalog: %s: %w", coll.NS, err)
	}
	_, bytes := uuid.Binary()
	copy(coll.UUID[:], bytes)
	indexes := doc.Lookup("indexes")
	if indexes.Type != bson.TypeArray {
		return coll, nil
	}
	for it := indexes.Doc().Iter(); it.Next(); {
		d, err := loadIndex(it.Value(), parser)
		if err != nil {
			return nil, fmt.Errorf("catalog: %s: %w", coll.NS, err)
		}
		coll.Indexes = append(coll.Indexes, d)
	}
	return coll, nil
}

func loadIndex(v bson.Value, parser *index.Parser) (*index.Definition, error) {
	if v.Type != bson.TypeObject {
		return nil, fmt.Errorf("an index is a %s", v.Type)
	}
	id, spec := v.Doc().Lookup("id"), object(v.Doc(), "spec")
	if id.Type != bson.TypeInt64 || spec == nil || spec.Lookup("key").Type != bson.TypeObject {
		return nil, fmt.Errorf("an index lacks its number, specification or key: %s", v)
	}
	// A stored specification names its collation; none means none, whatever the collection's default.
	d, err := parser.Load(spec, nil)
	if err != nil {
		return nil, fmt.Errorf("index %q: %w", strings.Clone(text(spec, "name")), err)
	}
	return d.WithID(uint32(id.Int64())).WithForm(form(d, v.Doc().Lookup("form"))), nil
}

// form is what an index's entries look like. What is kept without a word on it is from when ordered values and deadlines
// were all that had entries.
func form(d *index.Definition, v bson.Value) int {
	switch {
	case v.Type == bson.TypeInt32:
		return int(v.Int32())
	case d.Kind == index.Ordered || d.Kind == index.Deadline:
		return 1
	}
	return 0
}
