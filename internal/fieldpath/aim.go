package fieldpath

import "strconv"

// Aim is a place in documents that an update goes to or through, with what lies below it.
type Aim struct {
	// Value says that what lies here is changed as a whole. Of an array, Appends says that elements are added behind its own, and
	// nothing else.
	Value, Appends bool
	// Fields are the fields and positions that the update names.
	Fields map[string]*Aim
	// Element is what it goes to in an element that it does not name; Each says that this may be several.
	Element *Aim
	Each    bool
}

// Field is the aim in a field; nil where there is none.
func (a *Aim) Field(name string) *Aim {
	if a == nil {
		return nil
	}
	return a.Fields[name]
}

// At is the aim at a position of an array; nil where there is none.
func (a *Aim) At(i int) *Aim {
	if a == nil {
		return nil
	}
	if named := a.Fields[strconv.Itoa(i)]; named != nil {
		return named
	}
	return a.Element
}

// Goes says whether the update goes on to what lies below.
func (a *Aim) Goes() bool { return a != nil && (len(a.Fields) > 0 || a.Element != nil) }
