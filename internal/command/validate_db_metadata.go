package command

import (
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

func validateDBMetadataCommands() []*Command {
	return []*Command{{Name: "validateDBMetadata", Needs: Needs{Also: needsValidateMetadata}, Doc: "Says which collections and indexes are not in a version of the stable API.", Run: validateDBMetadata}}
}

// maxMetadataErrorBytes bounds the errors that are listed.
const maxMetadataErrorBytes = 15 << 20

func validateDBMetadata(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	db, _ := a.String("db")
	coll, _ := a.String("collection")
	a.Required("apiParameters")
	strict := false
	if p := a.sub("apiParameters"); p != nil {
		p.Required("version")
		version, _ := p.String("version")
		strict = p.notNull("strict") && version == "1"
		p.notNull("deprecationErrors")
		if err := p.Done(); err != nil {
			a.Fail(err)
		}
	}
	if err := a.Done(); err != nil {
		return nil, err
	}
	if a.Has("collection") && coll == "" {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "Invalid collection name: ''")
	}
	if err := checkMetadataNames(db, a.Has("db"), coll); err != nil {
		return nil, err
	}
	b := bson.Build().Array("apiVersionErrors")
	truncated := false
	if strict {
		truncated = unstable(b, op.Query.Store.Catalog(), db, coll)
	}
	b.End()
	if truncated {
		b.Bool("hasMoreErrors", true)
	}
	return b.Doc(), nil
}

// notNull reads an optional bool that may not be null.
func (a *Args) notNull(key string) bool {
	if v := a.Value(key); !v.IsMissing() && v.IsNullish() {
		a.Fail(a.wrongType(key, v.Type, []bson.Type{bson.TypeBool}))
	}
	return a.Bool(key, false)
}

func checkMetadataNames(db string, given bool, coll string) error {
	switch {
	case given && db == "":
		return mongoerr.New(28539, "db name can't be empty")
	case len(db) > namespace.MaxDBLength || strings.ContainsAny(db, ".\x00"):
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid database name: '%s'", db)
	case strings.ContainsAny(db, "/\\ \""):
		return mongoerr.New(13280, "Invalid db name: %s", db)
	case strings.HasPrefix(coll, ".") || strings.ContainsRune(coll, 0):
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid collection name: '%s'", coll)
	}
	return nil
}

// unstable lists what is not in version 1 of the stable API; truncated says that there is more.
func unstable(b *bson.Builder, c *catalog.Catalog, db, coll string) (truncated bool) {
	n := 0
	for _, name := range c.Databases() {
		if db != "" && db != name {
			continue
		}
		for _, entry := range c.Collections(name) {
			if coll != "" && coll != entry.NS.Coll {
				continue
			}
			for _, d := range entry.Indexes {
				if !d.Sparse && d.Kind != index.Text {
					continue
				}
				if b.Len() > maxMetadataErrorBytes {
					return true
				}
				b.Object(bson.IndexKey(n)).String("ns", entry.NS.String()).Int32("code", int32(mongoerr.APIStrictError)).
					String("codeName", mongoerr.APIStrictError.Name()).
					String("errmsg", "The index with name "+d.Name+" is not allowed in API version 1.").End()
				n++
			}
		}
	}
	return false
}
