package index

import (
	"encoding/binary"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/geo"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// maxGeoKeys is how many keys a document may have before they are multiplied out.
const maxGeoKeys = 100_000

// hashSubtype is that of the binary values which the cells of a 2d index are.
const hashSubtype = 128

// GridKey is the value of a 2d index's first field for a place with that hash.
func GridKey(hash uint64) bson.Value {
	return bson.Binary(hashSubtype, binary.BigEndian.AppendUint64(nil, hash))
}

// GridHash is the hash that GridKey was made of.
func GridHash(v bson.Value) uint64 {
	if _, data := v.Binary(); len(data) == 8 {
		return binary.BigEndian.Uint64(data)
	}
	return 0
}

// sphereKeys are the cells of each place with each value of each other field. From version 2 on, documents without a place
// have none.
func (d *Definition) sphereKeys(doc bson.Doc, k *Keys) error {
	values := make([][]bson.Value, len(d.Fields))
	somewhere, count := d.sphere.version < 2, 1
	for i, f := range d.Fields {
		at := places(nil, doc.Value(), f.Parts, 0, &k.Multikey[i])
		last := uint64(1) << min(len(f.Parts)-1, 63)
		if f.Kind != Geo2DSphere {
			values[i] = ordinaryValues(at, &k.Multikey[i], last)
		} else {
			if d.sphere.version >= 2 && isNowhere(at) {
				at = nil
			}
			somewhere = somewhere || len(at) > 0
			var err error
			if values[i], err = d.cells(doc, at, k, i, last); err != nil {
				return err
			}
		}
		if count *= len(values[i]); count > maxGeoKeys {
			return mongoerr.New(mongoerr.CannotBuildIndexKeys, "Index key generation for index '%s' exceeded the maximum of %d keys", d.Name, maxGeoKeys)
		}
	}
	if !somewhere {
		return nil
	}
	return d.multiply(k, values, make([]bson.Value, 0, len(values)))
}

// places appends what stands at the end of a path, arrays there as a whole; arrays gets a bit for each component that led
// through one.
func places(dst []bson.Value, v bson.Value, parts []string, depth int, arrays *uint64) []bson.Value {
	switch {
	case depth == len(parts):
		return append(dst, v)
	case v.Type == bson.TypeObject:
		if w := v.Doc().Lookup(parts[depth]); !w.IsMissing() {
			return places(dst, w, parts, depth+1, arrays)
		}
	case v.Type == bson.TypeArray:
		*arrays |= 1 << min(max(depth-1, 0), 63)
		if isPosition(parts[depth]) {
			if w := v.Doc().Lookup(parts[depth]); !w.IsMissing() {
				dst = places(dst, w, parts, depth+1, arrays)
			}
		}
		for it := v.Doc().Iter(); it.Next(); {
			if it.Value().Type == bson.TypeObject {
				dst = places(dst, it.Value(), parts, depth, arrays)
			}
		}
	}
	return dst
}

// isNowhere says whether the only value is one that stands for no place.
func isNowhere(at []bson.Value) bool {
	if len(at) != 1 {
		return false
	}
	switch at[0].Type {
	case bson.TypeNull, bson.TypeUndefined:
		return true
	case bson.TypeObject, bson.TypeArray:
		return at[0].Doc().IsEmpty()
	}
	return false
}

// ordinaryValues are the keys of a field besides the places: the elements of arrays.
func ordinaryValues(at []bson.Value, arrays *uint64, last uint64) []bson.Value {
	if len(at) == 0 {
		return []bson.Value{bson.Null}
	}
	var out []bson.Value
	for _, v := range at {
		if v.Type != bson.TypeArray {
			out = append(out, v)
			continue
		}
		*arrays |= last
		if v.Doc().IsEmpty() {
			out = append(out, bson.Undefined)
		}
		out = v.Doc().Values(out)
	}
	return out
}

// cells are the keys of a field with places.
func (d *Definition) cells(doc bson.Doc, at []bson.Value, k *Keys, field int, last uint64) ([]bson.Value, error) {
	if len(at) == 0 {
		return []bson.Value{bson.Null}, nil
	}
	var out []bson.Value
	for _, v := range at {
		g, err := geo.Reader{Ask: k.Ask}.ParseStored(v)
		if k.Ask != nil {
			if ended := k.Ask(); ended != nil {
				return nil, ended
			}
		}
		if err == nil && d.sphere.version < 2 && g.Kind > geo.Polygon {
			err = mongoerr.New(mongoerr.BadValue, "geometry is not supported by 2dsphere indexes of version 1: %s", v)
		}
		if err != nil {
			return nil, noGeoKeys(doc, err)
		}
		cells, err := g.Cells(d.sphere.levels)
		if err != nil {
			return nil, noGeoKeys(doc, err)
		}
		if len(cells) > 1 {
			k.Multikey[field] |= last
		}
		for _, c := range cells {
			out = append(out, bson.Int64(int64(c)))
		}
	}
	return out, nil
}

func noGeoKeys(doc bson.Doc, err error) error {
	return mongoerr.New(16755, "Can't extract geo keys: %s  %s", doc, err)
}

// multiply adds a key for each choice of a value for each field; chosen has those of the first fields.
func (d *Definition) multiply(k *Keys, values [][]bson.Value, chosen []bson.Value) error {
	if len(chosen) == len(values) {
		return k.add(d, chosen)
	}
	for _, v := range values[len(chosen)] {
		if err := d.multiply(k, values, append(chosen, v)); err != nil {
			return err
		}
	}
	return nil
}

// flatKeys are the grid's cells of each point, each with one value for each other field. A document without a point has none.
func (d *Definition) flatKeys(doc bson.Doc, k *Keys) error {
	f := d.Fields[0]
	values := make([]bson.Value, 1, len(d.Fields))
	var ignored uint64
	for _, other := range d.Fields[1:] {
		values = append(values, oneValue(places(nil, doc.Value(), other.Parts, 0, &ignored)))
	}
	add := func(point bson.Value) error {
		hash, err := d.hash(point.Doc(), doc)
		values[0] = GridKey(hash)
		if err != nil {
			return err
		}
		return k.add(d, values)
	}
	for _, v := range places(nil, doc.Value(), f.Parts, 0, &k.Multikey[0]) {
		if v.Type != bson.TypeObject && v.Type != bson.TypeArray || v.Doc().IsEmpty() {
			continue
		}
		if v.Doc().Index(0).IsNumber() {
			if err := add(v); err != nil {
				return err
			}
			continue
		}
		k.Multikey[0] |= 1 << min(len(f.Parts)-1, 63)
		for it := v.Doc().Iter(); it.Next(); {
			point := it.Value()
			if point.Type != bson.TypeObject && point.Type != bson.TypeArray {
				return mongoerr.New(16804, "location object expected, location array not in correct format")
			}
			if point.Doc().IsEmpty() {
				continue
			}
			if err := add(point); err != nil {
				return err
			}
		}
	}
	return nil
}

// oneValue is the key of a field behind the point: an array of all its values when there are several.
func oneValue(at []bson.Value) bson.Value {
	var all []bson.Value
	for _, v := range at {
		if v.Type == bson.TypeArray {
			all = v.Doc().Values(all)
		} else {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, bson.Compare)
	all = slices.CompactFunc(all, func(a, b bson.Value) bool { return bson.Compare(a, b) == 0 })
	switch len(all) {
	case 0:
		return bson.Null
	case 1:
		return all[0]
	}
	return bson.ArrayOf(all...)
}

// hash is the cell of a point of a document.
func (d *Definition) hash(point, doc bson.Doc) (uint64, error) {
	at := point.Values(nil)
	if len(at) < 2 {
		return 0, mongoerr.New(13068, "geo field only has 1 element :: caused by :: %s", doc)
	}
	if !at[0].IsNumber() || !at[1].IsNumber() {
		return 0, mongoerr.New(13026, "geo values must be 'legacy coordinate pairs' for 2d indexes :: caused by :: %s", doc)
	}
	p := geo.Point{X: at[0].AsDouble(), Y: at[1].AsDouble()}
	if !d.grid.Holds(p) {
		return 0, mongoerr.New(13027, "point not in interval of [ %v, %v ] :: caused by :: %s", d.grid.Min, d.grid.Max, doc)
	}
	return d.grid.Hash(p), nil
}
