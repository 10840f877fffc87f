package mapping

import "strings"

// Field is as what a path is indexed, nil where it is not. An explicit field goes before a dynamic one, and hides it for what is below. What is
// in embeddedDocuments is not the document's.
func (d *Document) Field(path string) *Field {
	for d != nil {
		f, rest := d.explicitBelow(path)
		if f == nil {
			return d.Dynamic
		}
		if rest == "" {
			return f
		}
		d, path = f.Document, rest
	}
	return nil
}

// explicit is the field of a path that is not dynamic.
func (d *Document) explicit(path string) *Field {
	for d != nil {
		f, rest := d.explicitBelow(path)
		if f == nil || rest == "" {
			return f
		}
		d, path = f.Document, rest
	}
	return nil
}

// explicitBelow is the field that a path begins with, and what of the path is left. The name of a field may have dots itself: the longest goes.
func (d *Document) explicitBelow(path string) (f *Field, rest string) {
	if len(d.Fields) == 0 {
		return nil, ""
	}
	for name := path; ; {
		if f := d.Fields[name]; f != nil {
			return f, strings.TrimPrefix(path[len(name):], ".")
		}
		dot := strings.LastIndexByte(name, '.')
		if dot < 0 {
			return nil, ""
		}
		name = name[:dot]
	}
}

// Embedded are the embeddedDocuments at a path, which may lie in others; nil if there are none.
func (d *Definition) Embedded(path string) *Embedded { return d.Root.embedded(path) }

func (d *Document) embedded(path string) *Embedded {
	f, rest := d.explicitBelow(path)
	switch {
	case f == nil:
		return nil
	case rest == "":
		return f.Embedded
	}
	if f.Embedded != nil {
		if e := f.Embedded.embedded(rest); e != nil {
			return e
		}
	}
	if f.Document != nil {
		return f.Document.embedded(rest)
	}
	return nil
}
