package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/geo"
)

// ParseGeoNear reads a search by distance outside of a filter: { $near: …, $minDistance: …, $maxDistance: … } on path.
func ParseGeoNear(path string, d bson.Doc) (*GeoNear, error) {
	n := &GeoNear{Path: fieldpath.Split(path), Max: maxDistance, Source: d}
	legacy, err := n.parseLegacy(d)
	if err != nil || legacy {
		return n, err
	}
	return n, n.parseGeoJSON(d)
}

// Near is the filter's search by distance, nil when there is none; the parser lets there be one, and only where every
// document has to match it.
func (f *Filter) Near() *GeoNear {
	if f == nil {
		return nil
	}
	return nearIn(f.Root)
}

func nearIn(n Node) *GeoNear {
	switch n := n.(type) {
	case *GeoNear:
		return n
	case *And:
		for _, c := range n.Children {
			if near := nearIn(c); near != nil {
				return near
			}
		}
	}
	return nil
}

// Nearest is the place in d that lies nearest to Center, and how far it is; false when there is none, or when that one is
// not as far as asked. Ask may end the search; who gives one must ask it, too.
func (n *GeoNear) Nearest(d bson.Doc, ask func() error) (distance float64, place bson.Value, ok bool) {
	consider := func(v bson.Value) bool {
		far, there := n.raw(v, ask)
		if there && (!ok || far < distance) {
			distance, place, ok = far, v, true
		}
		return there
	}
	n.Path.Walk(d, fieldpath.Whole, func(v bson.Value, _ int) bool {
		if consider(v) || v.Type != bson.TypeArray {
			return false
		}
		for it := v.Doc().Iter(); it.Next(); {
			consider(it.Value())
		}
		return false
	})
	if !ok || !n.inside(distance) {
		return 0, bson.Missing, false
	}
	return n.unit(distance), place, true
}

// raw is how far v lies from Center, on the plane in its units and on the sphere in meters.
func (n *GeoNear) raw(v bson.Value, ask func() error) (float64, bool) {
	if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
		return 0, false
	}
	g, err := geo.Reader{Ask: ask}.ParseStored(v)
	if err != nil {
		return 0, false
	}
	if !n.Spherical {
		return geo.FlatDistance(n.Center, g)
	}
	d, ok := geo.SphereDistance(n.Center, g)
	return d * geo.EarthRadiusMeters, ok
}

// inside says whether a raw distance lies within Min and Max.
func (n *GeoNear) inside(raw float64) bool {
	low, high := n.Min, n.Max
	if n.Spherical && !n.Meters {
		low, high = low*geo.EarthRadiusMeters, high*geo.EarthRadiusMeters
	}
	return raw >= low && raw <= high
}

// unit is a raw distance in the unit of Min and Max.
func (n *GeoNear) unit(raw float64) float64 {
	if n.Spherical && !n.Meters {
		return raw / geo.EarthRadiusMeters
	}
	return raw
}
