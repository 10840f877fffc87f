package bson

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Conform says what of a well-formed document is not as the BSON specification has it: an array's keys out of sequence,
// options of a regular expression out of order, UUIDs and MD5 sums of a wrong length, and types that are not used any more.
// full adds strings that are not UTF-8 and field names that come twice.
func Conform(d Doc, full bool) error {
	c := conformance{full: full}
	return c.document(d, TypeObject)
}

type conformance struct{ full bool }

func (c *conformance) document(d Doc, t Type) error {
	var seen map[string]bool
	if c.full && t == TypeObject {
		seen = map[string]bool{}
	}
	i := 0
	for it := d.Iter(); it.Next(); i++ {
		key := it.Key()
		switch {
		case t == TypeArray && key != strconv.Itoa(i):
			return fmt.Errorf("the array has key %q in the place of %d", clipped(key), i)
		case c.full && !utf8.ValidString(key):
			return fmt.Errorf("the field name %q is not UTF-8", clipped(key))
		case seen[key]:
			return fmt.Errorf("the field name %q comes twice", clipped(key))
		}
		if seen != nil {
			seen[key] = true
		}
		if err := c.value(it.Value()); err != nil {
			return err
		}
	}
	return nil
}

func (c *conformance) value(v Value) error {
	switch v.Type {
	case TypeObject, TypeArray:
		return c.document(v.Doc(), v.Type)
	case TypeUndefined, TypeDBPointer, TypeSymbol, TypeCodeWithScope:
		return fmt.Errorf("the type %s is not used any more", v.Type)
	case TypeString, TypeCode:
		if c.full && !utf8.ValidString(v.Str()) {
			return fmt.Errorf("a string is not UTF-8")
		}
	case TypeBinary:
		return conformBinary(v)
	case TypeRegex:
		if _, options := v.Regex(); !slices.IsSorted([]byte(options)) {
			return fmt.Errorf("the options %q of a regular expression are not in order", clipped(options))
		}
	}
	return nil
}

func conformBinary(v Value) error {
	subtype, data := v.Binary()
	switch {
	case subtype == 2 || subtype == 3:
		return fmt.Errorf("the binary subtype %d is not used any more", subtype)
	case (subtype == 4 || subtype == 5) && len(data) != 16:
		return fmt.Errorf("a UUID or MD5 sum of %d bytes", len(data))
	}
	return nil
}

func clipped(s string) string { return string(clip([]byte(s))) }
