package index

import (
	"maps"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
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

// maxTextWeight is the first weight that is too large.
const maxTextWeight = 99999

// languages are those that text can be in, by all their names.
var languages = map[string]bool{"none": true, "danish": true, "da": true, "dutch": true, "nl": true, "english": true, "en": true,
	"finnish": true, "fi": true, "french": true, "fr": true, "german": true, "de": true, "hungarian": true, "hu": true, "italian": true,
	"it": true, "norwegian": true, "nb": true, "portuguese": true, "pt": true, "romanian": true, "ro": true, "russian": true, "ru": true,
	"spanish": true, "es": true, "swedish": true, "sv": true, "turkish": true, "tr": true}

// checkText applies the rules of text indexes.
func (d *Definition) checkText(spec bson.Doc) error {
	no := func(format string, args ...any) error {
		return mongoerr.New(mongoerr.CannotCreateIndex, format, args...)
	}
	if err := d.checkTextFields(); err != nil {
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
	if v := spec.Lookup("default_language"); v.Type == bson.TypeString && !languages[strings.ToLower(v.Str())] {
		return no("default_language is not valid: %s", v)
	}
	if v := spec.Lookup("language_override"); v.Type == bson.TypeString && (v.Str() == "" || v.Str()[0] == '$' || strings.ContainsRune(v.Str(), 0)) {
		return no("language_override is not valid: %s", v)
	}
	return nil
}

// checkTextFields holds a text index to text fields that stand together among ordered ones.
func (d *Definition) checkTextFields() error {
	runs := 0
	for i, f := range d.Fields {
		switch {
		case f.Kind == Text && (i == 0 || d.Fields[i-1].Kind != Text):
			runs++
		case f.Kind != Text && f.Kind != Ordered:
			return mongoerr.New(mongoerr.CannotCreateIndex, "bad index key pattern %s: Can't use more than one index plugin for a single index.", d.Key)
		}
	}
	if runs > 1 {
		return mongoerr.New(mongoerr.CannotCreateIndex, "'text' fields in index must all be adjacent")
	}
	return nil
}

func checkWeights(v bson.Value) error {
	switch v.Type {
	case bson.TypeMissing:
		return nil
	case bson.TypeObject:
	default:
		return mongoerr.New(mongoerr.CannotCreateIndex, "text index option 'weights' must be an object")
	}
	for it := v.Doc().Iter(); it.Next(); {
		w := it.Value()
		if !w.IsNumber() || w.AsDouble() < 1 || w.AsDouble() >= maxTextWeight {
			return mongoerr.New(mongoerr.CannotCreateIndex, "text index weight must be in the exclusive interval (0,%d) but found: %s", maxTextWeight, w)
		}
	}
	return nil
}

// weights are what each text field counts, by name; those that only the option names belong to the index too.
func (d *Definition) weights(given bson.Value) map[string]bson.Value {
	all := map[string]bson.Value{}
	for _, f := range d.Fields {
		if f.Kind == Text {
			all[f.Path] = bson.Int32(1)
		}
	}
	if given.Type == bson.TypeObject {
		for it := given.Doc().Iter(); it.Next(); {
			all[strings.Clone(it.Key())] = bson.Int32(int32(it.Value().TruncInt64()))
		}
	}
	return all
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
			if w := spec.Lookup("weights"); w.Type == bson.TypeObject {
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
	all := d.weights(spec.Lookup("weights"))
	b.Object("weights")
	for _, path := range slices.Sorted(maps.Keys(all)) {
		b.Value(path, all[path])
	}
	b.End()
	for _, o := range [2][2]string{{"default_language", "english"}, {"language_override", "language"}} {
		if s := lookupStr(spec, o[0]); s != "" {
			b.String(o[0], s)
		} else {
			b.String(o[0], o[1])
		}
	}
	version(b, spec, "textIndexVersion", defaultTextVersion)
}
