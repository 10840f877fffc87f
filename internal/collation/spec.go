package collation

import (
	"strings"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Version is the version of ICU whose rules MongoDB names in every collation.
const Version = "57.1"

// Spec is a collation document with every field filled in.
type Spec struct {
	Locale          string
	CaseLevel       bool
	CaseFirst       string // "upper", "lower" or "off"
	Strength        int    // 1 to 5
	NumericOrdering bool
	Alternate       string // "non-ignorable" or "shifted"
	MaxVariable     string // "punct" or "space"
	Normalization   bool
	Backwards       bool
}

// Doc is the document in the form in which MongoDB shows it: all fields, and the version.
func (s Spec) Doc() bson.Doc {
	return bson.Build().String("locale", s.Locale).Bool("caseLevel", s.CaseLevel).String("caseFirst", s.CaseFirst).
		Int32("strength", int32(s.Strength)).Bool("numericOrdering", s.NumericOrdering).String("alternate", s.Alternate).
		String("maxVariable", s.MaxVariable).Bool("normalization", s.Normalization).Bool("backwards", s.Backwards).
		String("version", Version).Doc()
}

// Parse reads a collation document, with MongoDB's errors. The locale "simple", whatever stands beside it, is nil.
func Parse(d bson.Doc) (*Collation, error) {
	s, err := parseSpec(d)
	if err != nil || s.Locale == "simple" {
		return nil, err
	}
	return newCollation(s), nil
}

func parseSpec(d bson.Doc) (Spec, error) {
	s := Spec{CaseFirst: "off", Strength: 3, Alternate: "non-ignorable", MaxVariable: "punct"}
	seen, err := (&Spec{}).setAll(d) // what is wrong with a field comes before what is wrong with the locale
	if err != nil {
		return s, err
	}
	locale := d.Lookup("locale")
	if locale.IsMissing() || isNull(locale) {
		return s, mongoerr.New(40414, "BSON field 'collation.locale' is missing but a required field")
	}
	if s.Locale = strings.Clone(locale.Str()); s.Locale != "simple" {
		if err := checkLocale(s.Locale); err != nil {
			return s, err
		}
		s.localeDefaults()
	}
	if _, err := s.setAll(d); err != nil {
		return s, err
	}
	if s.Locale == "simple" {
		return s, nil
	}
	if s.CaseFirst != "off" && !s.CaseLevel && s.Strength <= 2 && (seen["caseFirst"] || seen["strength"]) {
		return s, badValue("'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2: %s", d)
	}
	if s.Backwards && s.Strength == 1 && seen["backwards"] {
		return s, badValue("'backwards' is invalid with 'strength' of 1: %s", d)
	}
	return s, nil
}

// setAll sets the fields in their order and says which there are.
func (s *Spec) setAll(d bson.Doc) (seen map[string]bool, err error) {
	seen = map[string]bool{}
	for it := d.Iter(); it.Next(); {
		if seen[it.Key()] {
			return nil, mongoerr.New(40413, "BSON field 'collation.%s' is a duplicate field", it.Key())
		}
		seen[it.Key()] = true
		if err := s.set(it.Key(), it.Value()); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

func badValue(format string, args ...any) error {
	return mongoerr.New(mongoerr.BadValue, format, args...)
}

func wrongType(field string, v bson.Value, want string) error {
	return mongoerr.New(mongoerr.TypeMismatch, "BSON field 'collation.%s' is the wrong type '%s', expected type '%s'", field, v.Type, want)
}

func (s *Spec) set(key string, v bson.Value) error {
	flags := map[string]*bool{"caseLevel": &s.CaseLevel, "numericOrdering": &s.NumericOrdering, "normalization": &s.Normalization, "backwards": &s.Backwards}
	if flag, ok := flags[key]; ok {
		return setFlag(flag, key, v)
	}
	switch key {
	case "locale":
		if v.Type != bson.TypeString && !isNull(v) {
			return wrongType(key, v, "string")
		}
		return nil
	case "strength":
		return s.setStrength(v)
	case "caseFirst":
		return setWord(&s.CaseFirst, key, v, "upper", "lower", "off")
	case "alternate":
		return setWord(&s.Alternate, key, v, "non-ignorable", "shifted")
	case "maxVariable":
		return setWord(&s.MaxVariable, key, v, "punct", "space")
	case "version":
		if isNull(v) {
			return nil
		}
		if v.Type != bson.TypeString {
			return wrongType(key, v, "string")
		}
		if v.Str() != Version {
			return mongoerr.New(mongoerr.IncompatibleCollationVersion, "Requested collation version %s but the only available collator version was %s", v, Version)
		}
		return nil
	}
	return mongoerr.New(40415, "BSON field 'collation.%s' is an unknown field.", key)
}

func isNull(v bson.Value) bool { return v.Type == bson.TypeNull || v.Type == bson.TypeUndefined }

func setFlag(flag *bool, key string, v bson.Value) error {
	if isNull(v) && key != "backwards" {
		return nil
	}
	switch {
	case v.Type == bson.TypeBool:
	case key == "backwards":
		return mongoerr.New(mongoerr.TypeMismatch, "Field 'backwards' should be a boolean value, but found: %s", v.Type)
	default:
		return wrongType(key, v, "bool")
	}
	*flag = v.Bool()
	return nil
}

func setWord(word *string, key string, v bson.Value, words ...string) error {
	if isNull(v) {
		return nil
	}
	if v.Type != bson.TypeString {
		return wrongType(key, v, "string")
	}
	for _, w := range words {
		if v.Str() == w {
			*word = w
			return nil
		}
	}
	return badValue("Enumeration value '%s' for field 'collation.%s' is not a valid value.", v.Str(), key)
}

// setStrength cuts doubles to whole numbers and rounds decimals to the nearest even one, as MongoDB does.
func (s *Spec) setStrength(v bson.Value) error {
	if isNull(v) {
		return nil
	}
	if !v.IsNumber() {
		return mongoerr.New(mongoerr.TypeMismatch,
			"BSON field 'collation.strength' is the wrong type '%s', expected types '[double, decimal, long, int]'", v.Type)
	}
	n := v.TruncInt64()
	if v.Type == bson.TypeDecimal {
		n = rounded(v)
	}
	switch {
	case n < 0:
		return badValue("BSON field 'strength' value must be >= 0, actual value '%d'", n)
	case n > 5:
		return badValue("BSON field 'strength' value must be <= 5, actual value '%d'", n)
	case n == 0:
		return badValue("Enumeration value '%d' for field 'collation.strength' is not a valid value.", n)
	}
	s.Strength = int(n)
	return nil
}

func rounded(v bson.Value) int64 {
	d := v.Decimal()
	if d.IsNaN() || d.Inf() != 0 || d.Float64() > 100 || d.Float64() < -100 {
		return v.TruncInt64()
	}
	ctx := apd.BaseContext.WithPrecision(40)
	ctx.Rounding = apd.RoundHalfEven
	var r apd.Decimal
	if _, err := ctx.RoundToIntegralValue(&r, d.APD()); err != nil {
		return 0
	}
	n, err := r.Int64()
	if err != nil {
		return 0
	}
	return n
}

// localeDefaults sets what differs in a few places.
func (s *Spec) localeDefaults() {
	language, _, _ := strings.Cut(s.Locale, "@")
	switch base, _, _ := strings.Cut(language, "_"); {
	case language == "fr_CA":
		s.Backwards = true
	case base == "da" || base == "mt":
		s.CaseFirst = "upper"
	case base == "th":
		s.Alternate = "shifted"
	case base == "vi" || base == "ar" || base == "bn" || base == "bo" || base == "dz" || base == "hy":
		// These normalize by default in ICU's data, which MongoDB shows.
		s.Normalization = base == "vi"
	}
}
