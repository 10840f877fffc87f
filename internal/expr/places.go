package expr

import "github.com/ebbdb/ebb/internal/bson"

const (
	// keptPlaces is how many arrays an Env remembers places of.
	keptPlaces = 4
	// minPlacedBytes is how long an array is at least for that to be worth it.
	minPlacedBytes = 512
)

// places is where elements of long arrays lie that are asked for by their positions again and again, as in {$map: {input: {$range: …}, in:
// {$arrayElemAt: ["$a", "$$this"]}}}. It holds while a lambda goes through its input: no document and no result changes meanwhile, so an array is
// known by where it lies.
type places struct {
	lambdas int // that are being evaluated, one inside the other
	kept    [keptPlaces]bson.Places
	next    int // which of kept is given up next
}

func (p *places) enter() { p.lambdas++ }

func (p *places) leave() {
	if p.lambdas--; p.lambdas == 0 {
		p.kept, p.next = [keptPlaces]bson.Places{}, 0
	}
}

// placesOf is where the elements of an array lie.
func (e *Env) placesOf(array bson.Value) *bson.Places {
	p := &e.places
	if p.lambdas == 0 || len(array.Data) < minPlacedBytes {
		e.once = bson.PlacesOf(array.Doc(), e.once)
		return &e.once
	}
	for i := range p.kept {
		if p.kept[i].Are(array.Doc()) {
			return &p.kept[i]
		}
	}
	kept := &p.kept[p.next]
	p.next = (p.next + 1) % keptPlaces
	*kept = bson.PlacesOf(array.Doc(), *kept)
	return kept
}

// elementAt is the element at i, counted from the end when i is negative, or missing.
func (e *Env) elementAt(array bson.Value, i int) bson.Value {
	p := e.placesOf(array)
	if i < 0 {
		if i += p.Count(); i < 0 {
			return bson.Missing
		}
	}
	return p.Index(i)
}
