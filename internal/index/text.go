package index

import (
	"maps"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/textsearch"
)

// The two fields that stand for all text fields in the key pattern of a text index as it is listed; what they are is in
// its weights.
const (
	ftsField  = "_fts"
	ftsxField = "_ftsx"
)

// Versions of text indexes.
const (
	minTextVersion     = 1
	defaultTextVersion = 3
)

// What texts are in that do not say, and where they say it.
const (
	defaultLanguage = "english"
	defaultOverride = "language"
)

// maxTextWeight is the first weight that is too large.
const maxTextWeight = 99999

// checkText applies the rules of text indexes.
func (d *Definition) checkText(spec bson.Doc) error {
	no := func(format string, args ...any) error {
		return mongoerr.New(mongoerr.CannotCreateIndex, format, args...)
	}
	if err := checkTextFields(spec.Lookup("key").Doc()); err != nil {
		return err
	}
	if err := checkWeights(spec.Lookup("weights")); err != nil {
		return err
	}
	if v := spec.Lookup("textIndexVersion"); !v.IsMissing() {
		if n, exact := v.AsInt64(); v.Type == bson.TypeDecimal || !exact || n < minTextVersion || n > defaultTextVersion {
			return no("bad textIndexVersion: %s", v)
		}
	}
	if v := spec.Lookup("default_language"); v.Type == bson.TypeString && textsearch.Find(v.Str()) == nil {
		return no("default_language is not valid: %s", v)
	}
	if v := spec.Lookup("language_override"); v.Type == bson.TypeString && (v.Str() == "" || v.Str()[0] == '$' || strings.ContainsAny(v.Str(), ".\x00")) {
		return no("language_override is not valid: %s", v)
	}
	return nil
}

// checkTextFields holds a text index to text fields that stand together among ordered ones. _fts and _ftsx are names of the text
// fields as they are listed, and of nothing else.
func checkTextFields(key bson.Doc) error {
	no := func(text string) error { return mongoerr.New(mongoerr.CannotCreateIndex, "%s", text) }
	runs, before, listed := 0, false, false // listed: the field before is _fts
	for it := key.Iter(); it.Next(); {
		v := it.Value()
		text := v.Type == bson.TypeString && v.Str() == "text"
		switch {
		case text && strings.HasSuffix(it.Key(), "."+textsearch.Wildcard): // which earlier versions took, and Load takes
			return errDollar()
		case listed && it.Key() != ftsxField:
			return no("expected _ftsx after _fts")
		case listed && v.TruncInt64() != 1:
			return no("expecting _ftsx:1")
		case listed:
			listed = false
			continue
		case v.Type == bson.TypeString && !text:
			return mongoerr.New(mongoerr.CannotCreateIndex, "bad index key pattern %s: Can't use more than one index plugin for a single index.", key)
		case it.Key() == ftsField && text && runs == 0:
			listed = true
		case it.Key() == ftsField || it.Key() == ftsxField:
			return no("text index with reserved fields _fts/_ftsx not allowed")
		case !text && v.TruncInt64() != 1 && v.TruncInt64() != -1:
			return no("expected value 1 or -1 for non-text key in compound index")
		}
		if text && !before {
			runs++
		}
		before = text
	}
	switch {
	case listed:
		return no("expected _ftsx after _fts")
	case runs > 1:
		return no("'text' fields in index must all be adjacent")
	}
	return nil
}

// checkListed holds a key pattern with _fts and _ftsx to weights, which say what the text fields are.
func checkListed(key, spec bson.Doc) error {
	if key.Lookup(ftsField).IsMissing() {
		return nil
	}
	if err := checkTextFields(key); err != nil {
		return err
	}
	v := spec.Lookup("weights")
	if err := checkWeights(v); err != nil {
		return err
	}
	if v.IsMissing() || v.Type == bson.TypeObject && v.Doc().IsEmpty() {
		return mongoerr.New(mongoerr.CannotCreateIndex, "text index option 'weights' must specify fields or the wildcard")
	}
	return nil
}

func checkWeights(v bson.Value) error {
	switch {
	case v.IsMissing() || isWildcardWeight(v):
		return nil
	case v.Type != bson.TypeObject:
		return mongoerr.New(mongoerr.CannotCreateIndex, "text index option 'weights' must be an object")
	}
	for it := v.Doc().Iter(); it.Next(); {
		switch w := it.Value(); {
		case !w.IsNumber():
			return mongoerr.New(mongoerr.CannotCreateIndex, "weight for text index needs numeric type")
		case !(w.AsDouble() >= 1 && w.AsDouble() < maxTextWeight): // nor is NaN
			return mongoerr.New(mongoerr.CannotCreateIndex, "text index weight must be in the exclusive interval (0,%d) but found: %s", maxTextWeight, w)
		}
		if err := checkWeightPath(it.Key()); err != nil {
			return err
		}
	}
	return nil
}

// isWildcardWeight says whether weights are given as "$**", which has all fields searched.
func isWildcardWeight(v bson.Value) bool {
	return v.Type == bson.TypeString && v.Str() == textsearch.Wildcard
}

func checkWeightPath(path string) error {
	switch {
	case path == textsearch.Wildcard:
		return nil
	case path == "":
		return mongoerr.New(mongoerr.CannotCreateIndex, "weight cannot be on an empty field")
	}
	for part := range strings.SplitSeq(path, ".") {
		switch {
		case part == "":
			return mongoerr.New(mongoerr.CannotCreateIndex, "weight cannot have empty path component")
		case part[0] == '$':
			return mongoerr.New(mongoerr.CannotCreateIndex, "weight cannot have path component with $ prefix")
		}
	}
	return nil
}

// readText puts _fts and _ftsx, the word and its score, in the place of the text fields, which go into the weights: in the
// key pattern as it is listed, and in the fields as keys have them.
func (d *Definition) readText(spec bson.Doc) {
	d.weights = weights(d.Fields, spec.Lookup("weights"))
	d.Key = d.textKey()
	var fields []Field
	for _, f := range d.Fields {
		switch {
		case f.Kind != Text:
			fields = append(fields, f)
		case len(fields) == 0 || fields[len(fields)-1].Kind != Text:
			fields = append(fields, Field{Path: ftsField, Parts: []string{ftsField}, Kind: Text}, Field{Path: ftsxField, Parts: []string{ftsxField}, Kind: Text})
		}
	}
	d.Fields = fields
	language := textsearch.Find(lookupStr(spec, "default_language"))
	if language == nil { // there is none, or checkText refuses it
		language = textsearch.Find(defaultLanguage)
	}
	override := strings.Clone(lookupStr(spec, "language_override"))
	if override == "" {
		override = defaultOverride
	}
	d.text = textsearch.NewSpec(d.weights, language, override)
	d.override = override
}

// weights are what each text field counts, in the order of their names; those that only the option names belong to the
// index too.
func weights(fields []Field, given bson.Value) bson.Doc {
	all := map[string]bson.Value{}
	for _, f := range fields {
		if f.Kind == Text {
			all[f.Path] = bson.Int32(1)
		}
	}
	if given.Type == bson.TypeObject {
		for it := given.Doc().Iter(); it.Next(); {
			if it.Value().IsNumber() {
				all[strings.Clone(it.Key())] = bson.Int32(int32(it.Value().TruncInt64()))
			}
		}
	}
	if isWildcardWeight(given) {
		all[textsearch.Wildcard] = bson.Int32(1)
	}
	b := bson.Build()
	for _, path := range slices.Sorted(maps.Keys(all)) {
		b.Value(path, all[path])
	}
	return b.Doc()
}

// textKey is the key pattern as it is listed: _fts and _ftsx in the place of the text fields.
func (d *Definition) textKey() bson.Doc {
	b := bson.Build()
	done := false
	for it := d.Key.Iter(); it.Next(); {
		v := it.Value()
		switch {
		case v.Type != bson.TypeString || v.Str() != "text":
			if it.Key() != ftsxField {
				b.Value(it.Key(), v)
			}
		case !done:
			b.String(ftsField, "text").Int32(ftsxField, 1)
			done = true
		}
	}
	return b.Doc()
}

// withTextFields is a key pattern with the text fields in the place of _fts and _ftsx.
func withTextFields(key, spec bson.Doc) bson.Doc {
	if v := key.Lookup(ftsField); v.Type != bson.TypeString || v.Str() != "text" {
		return key
	}
	b := bson.Build()
	for it := key.Iter(); it.Next(); {
		switch it.Key() {
		case ftsxField:
		case ftsField:
			w := spec.Lookup("weights")
			if isWildcardWeight(w) {
				b.String(textsearch.Wildcard, "text")
			}
			if w.Type == bson.TypeObject {
				for field := w.Doc().Iter(); field.Next(); {
					b.String(field.Key(), "text")
				}
			}
		default:
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// listText appends what MongoDB fills in for text indexes.
func (d *Definition) listText(b *bson.Builder, spec bson.Doc) {
	b.Document("weights", d.weights)
	for _, o := range [2][2]string{{"default_language", defaultLanguage}, {"language_override", defaultOverride}} {
		if s := lookupStr(spec, o[0]); s != "" {
			b.String(o[0], s)
		} else {
			b.String(o[0], o[1])
		}
	}
	version(b, spec, "textIndexVersion", defaultTextVersion)
}
