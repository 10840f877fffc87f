package index

import "github.com/ebbdb/ebb/internal/bson"

// Change is new values for options of an index, by name; Missing takes an option away.
type Change struct {
	Option string
	Value  bson.Value
}

// Changed is d with other options, under the same number. The values are good ones, each for itself.
func (p *Parser) Changed(d *Definition, changes []Change) (*Definition, error) {
	b := bson.BuildOn(make([]byte, 0, len(d.Spec)+64))
	done := make([]bool, len(changes))
	for it := d.Spec.Iter(); it.Next(); {
		v := it.Value()
		for i, c := range changes {
			if c.Option == it.Key() {
				v, done[i] = c.Value, true
			}
		}
		b.Value(it.Key(), v)
	}
	for i, c := range changes {
		if !done[i] {
			b.Value(c.Option, c.Value)
		}
	}
	changed, err := p.Load(b.Doc(), nil)
	if err != nil {
		return nil, err
	}
	if err := changed.checkOnTS(); err != nil {
		return nil, err
	}
	if changed.Kind == d.Kind {
		changed.Form = d.Form
	}
	return changed.WithID(d.ID), nil
}
