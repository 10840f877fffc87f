package pipeline

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// Merge is $merge.
type Merge struct {
	written
	Into namespace.NS
	// On are the fields that find the document to merge with, in the order given; OnGiven says that they were.
	On      []fieldpath.Path
	OnGiven bool
	// WhenMatched is "replace", "keepExisting", "merge", "fail" or "pipeline", WhenNotMatched "insert", "discard" or "fail".
	WhenMatched, WhenNotMatched string
	// Let is evaluated on the new document, Pipeline run on the old one, when WhenMatched is "pipeline".
	Let      []Let
	Pipeline *Pipeline
}

func parseMerge(p *parsing, arg bson.Value) ([]Stage, error) {
	m := &Merge{written: written{"$merge", arg}, Into: namespace.NS{DB: p.NS.DB}, WhenMatched: "merge", WhenNotMatched: "insert"}
	var err error
	switch arg.Type {
	case bson.TypeString:
		m.Into.Coll = arg.Str()
		if m.Into.Coll == "" {
			return nil, mongoerr.New(mongoerr.InvalidNamespace, "Invalid $merge target namespace: '%s.'", m.Into.DB)
		}
	case bson.TypeObject:
		err = m.read(p, arg.Doc())
	default:
		err = mongoerr.New(mongoerr.TypeMismatch, "$merge requires a string or object argument, but found %s", arg.Type)
	}
	if err != nil {
		return nil, err
	}
	if !m.OnGiven {
		m.On = []fieldpath.Path{fieldpath.Split("_id")}
	}
	return one(m), m.check()
}

func (m *Merge) read(p *parsing, d bson.Doc) error {
	var into, on, let, matched, notMatched, collations bson.Value
	err := readStrict("$merge", d, want{name: "into", to: &into}, want{name: "on", to: &on}, want{name: "let", to: &let, types: anObject},
		want{name: "whenMatched", to: &matched}, want{name: "whenNotMatched", to: &notMatched, types: aString},
		want{name: "targetCollectionVersion", to: &collations}, want{name: "allowMergeOnNullishValues", to: &collations})
	if err != nil {
		return err
	}
	if into.IsMissing() {
		return mongoerr.New(40414, "BSON field '$merge.into' is missing but a required field")
	}
	if err := m.readInto(into); err != nil {
		return err
	}
	if err := m.readOn(on); err != nil {
		return err
	}
	if err := m.readModes(p, matched, notMatched, let); err != nil {
		return err
	}
	return nil
}

func (m *Merge) readInto(v bson.Value) error {
	switch v.Type {
	case bson.TypeString:
		if m.Into.Coll = v.Str(); m.Into.Coll == "" {
			return mongoerr.New(5786800, "$merge 'into' field cannot be an empty string")
		}
	case bson.TypeObject:
		var db, coll bson.Value
		if err := readStrict("into", v.Doc(), want{name: "db", to: &db, types: aString}, want{name: "coll", to: &coll, types: aString}); err != nil {
			return err
		}
		if coll.IsMissing() {
			return mongoerr.New(5786801, "$merge 'into' field must specify a 'coll' that is not empty, null or undefined")
		}
		if m.Into.Coll = coll.Str(); m.Into.Coll == "" {
			return mongoerr.New(5786800, "$merge 'into' field cannot be an empty string")
		}
		if !db.IsMissing() && db.Str() != "" {
			m.Into.DB = db.Str()
		}
	default:
		return mongoerr.New(51178, "$merge 'into' field  must be either a string or an object, but found %s", v.Type)
	}
	return nil
}

func (m *Merge) readOn(v bson.Value) error {
	var names []string
	switch v.Type {
	case bson.TypeMissing:
		return nil
	case bson.TypeString:
		names = append(names, v.Str())
	case bson.TypeArray:
		if v.Doc().IsEmpty() {
			return mongoerr.New(51187, "If explicitly specifying $merge 'on', must include at least one field")
		}
		for it := v.Doc().Iter(); it.Next(); {
			if it.Value().Type != bson.TypeString {
				return mongoerr.New(51134, "$merge 'on' array elements must be strings, but found %s", it.Value().Type)
			}
			names = append(names, it.Value().Str())
		}
	default:
		return mongoerr.New(51186, "$merge 'on' field  must be either a string or an array of strings, but found %s", v.Type)
	}
	m.OnGiven = true
	seen := map[string]bool{}
	for _, name := range names {
		path, err := fieldpath.New(name)
		if err != nil {
			return err
		}
		if seen[name] {
			return mongoerr.New(31465, "Found a duplicate field '%s'", name)
		}
		seen[name] = true
		m.On = append(m.On, path)
	}
	return nil
}

func (m *Merge) readModes(p *parsing, matched, notMatched, let bson.Value) error {
	switch matched.Type {
	case bson.TypeMissing:
	case bson.TypeString:
		m.WhenMatched = matched.Str()
		if !slices.Contains([]string{"replace", "keepExisting", "merge", "fail"}, m.WhenMatched) {
			return mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field 'whenMatched' is not a valid value.", m.WhenMatched)
		}
	case bson.TypeArray:
		m.WhenMatched = "pipeline"
	default:
		return mongoerr.New(51191, "$merge 'whenMatched' field  must be either a string or an array, but found %s", matched.Type)
	}
	if !notMatched.IsMissing() {
		m.WhenNotMatched = notMatched.Str()
		if !slices.Contains([]string{"insert", "discard", "fail"}, m.WhenNotMatched) {
			return mongoerr.New(mongoerr.BadValue, "Enumeration value '%s' for field '$merge.whenNotMatched' is not a valid value.", m.WhenNotMatched)
		}
	}
	if m.WhenNotMatched != "insert" && (m.WhenMatched == "keepExisting" || m.WhenMatched == "fail" && m.WhenNotMatched == "fail" ||
		m.WhenMatched == "fail" && m.WhenNotMatched == "discard") {
		return mongoerr.New(51181, "Combination of {whenMatched: %s, whenNotMatched: %s} is not supported", m.WhenMatched, m.WhenNotMatched)
	}
	if m.WhenMatched != "pipeline" {
		if !let.IsMissing() {
			return mongoerr.New(51199, "Cannot use 'let' variables with 'whenMatched: %s' mode", m.WhenMatched)
		}
		return nil
	}
	return m.readPipeline(p, matched, let)
}

func (m *Merge) readPipeline(p *parsing, stages, let bson.Value) error {
	b := bson.Build()
	if let.IsMissing() {
		b.String("new", "$$ROOT")
	} else {
		if v := let.Doc().Lookup("new"); !v.IsMissing() && !(v.Type == bson.TypeString && v.Str() == "$$ROOT") {
			return mongoerr.New(51273, "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'")
		}
		b.Fields(let.Doc())
		if let.Doc().Lookup("new").IsMissing() {
			b.String("new", "$$ROOT")
		}
	}
	scope, err := p.readLet(b.Doc().Value(), &m.Let)
	if err != nil {
		return err
	}
	text := stages.String()
	for i := range m.Let {
		m.Let[i].Used = strings.Contains(text, "$$"+m.Let[i].Name)
	}
	m.Pipeline, err = p.sub("$merge", stages, m.Into, scope)
	return err
}

func (m *Merge) check() error {
	switch {
	case m.Into.IsSystem():
		return mongoerr.New(31319, "Cannot $merge into special collection: '%s'", m.Into.Coll)
	case m.Into.DB == "admin" || m.Into.DB == "config" || m.Into.DB == "local":
		return mongoerr.New(31320, "Cannot $merge into internal database: '%s'", m.Into.DB)
	case strings.HasPrefix(m.Into.Coll, "$"):
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid $merge target namespace: '%s'", m.Into)
	}
	return m.Into.Check()
}

// CheckUpdate refuses what an update may not do. MongoDB finds out with the first document, whether or not that finds another.
func (m *Merge) CheckUpdate() error {
	if m.Pipeline == nil {
		return nil
	}
	for _, s := range m.Pipeline.Stages {
		switch s := s.(type) {
		case *Project, *ReplaceRoot:
		default:
			return notInUpdate(s.Name())
		}
	}
	return nil
}

func (m *Merge) needs(d *Dependencies) bool { return d.everything() }
