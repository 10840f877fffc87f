package index

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func newParser() *Parser { return NewParser(match.NewParser()) }

// named is the specification with the name that drivers give it.
func named(spec bson.Doc) bson.Doc {
	if !spec.Lookup("name").IsMissing() {
		return spec
	}
	var parts []string
	for it := spec.Lookup("key").Doc().Iter(); it.Next(); {
		v := it.Value().String()
		if it.Value().Type == bson.TypeString {
			v = it.Value().Str()
		}
		parts = append(parts, it.Key()+"_"+v)
	}
	return bson.Build().Fields(spec).String("name", strings.Join(parts, "_")).Doc()
}

func failure(err error) string {
	e := mongoerr.From(err)
	return fmt.Sprintf("error %d %s\n", e.Code, e.Code.Name())
}

func TestIndex(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var d *Definition
		p := newParser()
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			switch td.Cmd {
			case "index":
				var err error
				if d, err = p.Parse(named(bson.MustDoc(td.Input)), nil); err != nil {
					return failure(err)
				}
				return "ok\n"
			case "doc":
				return keysText(d, bson.MustDoc(td.Input))
			case "spec":
				d, err := p.Parse(named(bson.MustDoc(td.Input)), nil)
				if err != nil {
					return failure(err)
				}
				return d.Spec.Text() + "\n"
			case "load":
				d, err := p.Load(bson.MustDoc(td.Input), nil)
				if err != nil {
					return failure(err)
				}
				return fmt.Sprintf("ttl %d\n", d.ExpireAfterSeconds)
			case "conflict":
				return conflictText(p, strings.Split(td.Input, "\n"))
			}
			return "unknown command " + td.Cmd
		})
	})
}

func keysText(d *Definition, doc bson.Doc) string {
	var k Keys
	if err := d.Keys(doc, &k); err != nil {
		return failure(err)
	}
	var b strings.Builder
	for i := range k.Len() {
		vs, _, err := keystring.Decode(nil, k.Key(i), k.TypeBits(i), len(d.kept().Fields))
		if err != nil {
			return err.Error()
		}
		b.WriteString(bson.ArrayOf(vs...).Text() + "\n")
	}
	if k.IsMultikey() {
		var paths []string
		for _, p := range k.Paths() {
			paths = append(paths, strings.ReplaceAll(p, "\x00", "[]"))
		}
		for i, f := range d.Fields {
			for c := range f.Parts {
				if k.Multikey[i]>>c&1 == 1 {
					paths = append(paths, strings.Join(f.Parts[:c+1], "."))
				}
			}
		}
		b.WriteString("multikey: " + strings.Join(paths, ", ") + "\n")
	}
	return b.String()
}

func conflictText(p *Parser, specs []string) string {
	have, err := p.Parse(named(bson.MustDoc(specs[0])), nil)
	if err != nil {
		return failure(err)
	}
	want, err := p.Parse(named(bson.MustDoc(specs[1])), nil)
	if err != nil {
		return failure(err)
	}
	there, retime, err := Conflict([]*Definition{have}, want)
	switch {
	case err != nil:
		return failure(err)
	case there != nil:
		return "already there\n"
	case retime != nil:
		return "new TTL in place\n"
	}
	return "new\n"
}
