// Package index is what an index is: its definition, the rules of createIndexes, which definitions conflict, and which
// keys a document has in it. It reads and writes no store and does not know how queries use indexes.
package index

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/geo"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/textsearch"
)

// Kind is what an index field, or the index as a whole, is made of.
type Kind uint8

// The kinds of MongoDB, and the deadline table of a TTL index on _ts.
const (
	Ordered Kind = iota
	Deadline
	Hashed
	Text
	Geo2D
	Geo2DSphere
	Wildcard
)

// String is the plugin name of k as a key pattern has it, "" for ordered fields.
func (k Kind) String() string {
	return [...]string{"", "", "hashed", "text", "2d", "2dsphere", "wildcard"}[k]
}

// form is the version of what the kind's entries look like, 0 when none are kept. One whose entries change gets the next:
// whoever opens a store builds the indexes anew that it keeps in another form.
func (k Kind) form() int {
	return [...]int{
		Ordered:     1,
		Deadline:    1,
		Hashed:      1,
		Text:        3, // 1 and 2 when some languages had no stems, or others
		Geo2D:       1,
		Geo2DSphere: 1,
		Wildcard:    1,
	}[k]
}

// Built says whether entries of the kind are kept. Indexes of other kinds can be defined, listed and dropped; no plan
// uses them.
func (k Kind) Built() bool { return k.form() > 0 }

// Field is one field of a key pattern.
type Field struct {
	Path       string
	Parts      []string
	Kind       Kind
	Descending bool
	// Plain says that its strings are in the order of their bytes, whatever the index's collation is.
	Plain bool
}

// Definition is an index. It is made by Parse or Load and not changed afterwards; With… methods return copies.
type Definition struct {
	// ID is the index's number in the store, never used twice.
	ID     uint32
	Name   string
	Key    bson.Doc
	Fields []Field
	// Kind is the kind of the first field that is not Ordered.
	Kind Kind
	// Form is what its entries look like, see FormToday; 0 when it has none.
	Form int

	Unique, Sparse, Hidden, PrepareUnique bool

	// Clustered says that the order of a clustered collection is asked for, which is there or not.
	Clustered bool

	PartialFilter bson.Doc
	Collation     bson.Doc

	// TTL says whether the index expires documents.
	TTL                bool
	ExpireAfterSeconds int32
	// TTLRepaired says that a catalogue had a value that makes no sense, and that it reads as InactiveTTL.
	TTLRepaired bool
	// HideExpired makes expired documents invisible before they are deleted. It is always so for Deadline.
	HideExpired bool

	// Wild is what a wildcard index is beyond an ordered one, nil for others.
	Wild *Wild

	// Spec is the index as it was asked for, with what was filled in.
	Spec bson.Doc

	keyText  string // of Key, once the index is one that plans walk; or ""
	partial  *match.Filter
	collator *collation.Collation
	// Of a text index: what its text fields count, what a document's words score, and where texts tell their language.
	weights  bson.Doc
	text     *textsearch.Spec
	override string
	grid     geo.Grid // of a 2d index
	sphere   sphere   // of a 2dsphere index
}

// KeyText is Key as plans' summaries have it.
func (d *Definition) KeyText() string {
	if d.keyText != "" {
		return d.keyText
	}
	return keyText(d.Key)
}

// keyText tells directions by 1 and -1, in whichever numbers the client gave them.
func keyText(key bson.Doc) string {
	text := "{ "
	for it := key.Iter(); it.Next(); {
		if len(text) > 2 {
			text += ", "
		}
		text += it.Key() + ": "
		switch v := it.Value(); {
		case v.Type == bson.TypeString:
			text += v.String()
		case v.AsDouble() < 0:
			text += "-1"
		default:
			text += "1"
		}
	}
	return text + " }"
}

// Version is the version that the index was asked for in.
func (d *Definition) Version() int32 { return versionOf(d.Spec) }

// IsID says whether d is the index on _id that every plain collection has.
func (d *Definition) IsID() bool { return d.Name == "_id_" }

// OrdersIDs says whether d has the _ids in order, as a clustered collection has its records.
func (d *Definition) OrdersIDs() bool {
	return d.Kind == Ordered && len(d.Fields) == 1 && d.Fields[0].Path == "_id"
}

// FormToday is the form that the entries of d have when they are made today. Those under a collation of the index's own are in one more than
// others of their kind: in the first one strings could be in the order of another language, since the collation did not keep its locale.
func (d *Definition) FormToday() int {
	if d.Kind.Built() && d.collator != nil && !d.IsID() {
		return d.Kind.form() + 1
	}
	return d.Kind.form()
}

// Built says whether the index has an entry for all that it should.
func (d *Definition) Built() bool { return d.Kind.Built() && d.Form == d.FormToday() }

// Hides says whether documents that expired by d are invisible; all is the server's ttlHideExpired.
func (d *Definition) Hides(all bool) bool {
	return d.TTL && (d.Kind == Ordered || d.Kind == Deadline) && (d.Kind == Deadline || d.HideExpired || all)
}

// Covers says whether doc belongs in the index as far as its partial filter says.
func (d *Definition) Covers(doc bson.Doc) bool {
	if d.partial == nil {
		return true
	}
	ok, err := d.partial.Match(nil, doc)
	return err == nil && ok
}

// Partial is the parsed partial filter, or nil.
func (d *Definition) Partial() *match.Filter { return d.partial }

// Collator is the index's collation, nil for plain byte order.
func (d *Definition) Collator() *collation.Collation { return d.collator }

// Restores says whether the indexed values can be had back from keys: under a collation strings cannot.
func (d *Definition) Restores() bool { return d.Kind == Ordered && d.collator == nil }

// Descending is the direction of each field.
func (d *Definition) Descending() []bool {
	dirs := make([]bool, len(d.Fields))
	for i, f := range d.Fields {
		dirs[i] = f.Descending
	}
	return dirs
}

// Roots are the fields of a document that its keys are made of; nil when any may be.
func (d *Definition) Roots() (roots []string) {
	if d.PartialFilter != nil {
		return nil
	}
	switch d.Kind {
	case Ordered, Hashed, Geo2D, Geo2DSphere:
		for _, f := range d.Fields {
			roots = append(roots, f.Parts[0])
		}
	case Text:
		return d.textRoots()
	}
	return roots
}

// WithForm is d with entries of a form.
func (d *Definition) WithForm(form int) *Definition {
	c := *d
	c.Form = form
	return &c
}

// WithID is d under a number.
func (d *Definition) WithID(id uint32) *Definition {
	c := *d
	c.ID = id
	return &c
}
