package vectorsearch

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

const benchDimensions = 768

func randomVector(r *rand.Rand, n int) (array, floats bson.Value) {
	b := bson.Build().Array("v")
	data := []byte{byte(Float32), 0}
	for i := range n {
		f := float32(r.NormFloat64())
		b.Double(bson.IndexKey(i), float64(f))
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	return b.End().Doc().Lookup("v"), bson.Build().Binary("v", vectorSubtype, data).Doc().Lookup("v")
}

func readBy(slow bool, v bson.Value, dimensions int) (x Vector, ok bool) {
	if !slow || v.Type != bson.TypeArray {
		ok = x.Read(v, dimensions)
		return x, ok
	}
	x.Kind = Float32
	for it := v.Doc().Iter(); it.Next(); {
		f, ok := number(it.Value())
		if !ok {
			return x, false
		}
		x.floats = append(x.floats, f)
	}
	return x, len(x.floats) == dimensions
}

// TestReadDoubles: an array of doubles is read as it is value by value, whatever its length.
func TestReadDoubles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 9, 10, 11, 99, 100, 101, 999, 1000, 1001, MaxDimensions} {
		array, floats := randomVector(r, n)
		quick, ok := readBy(false, array, n)
		slow, also := readBy(true, array, n)
		packed, too := readBy(false, floats, n)
		if !ok || !also || !too {
			t.Fatalf("%d dimensions: read %v, value by value %v, packed %v", n, ok, also, too)
		}
		for i := range n {
			if quick.floats[i] != slow.floats[i] || quick.floats[i] != packed.floats[i] {
				t.Fatalf("%d dimensions: component %d is %v, value by value %v, packed %v", n, i, quick.floats[i], slow.floats[i], packed.floats[i])
			}
		}
		for _, other := range []int{n - 1, n + 1} {
			if _, ok := readBy(false, array, other); ok {
				t.Errorf("a vector of %d dimensions was taken for one of %d", n, other)
			}
		}
	}
}

// TestExtremeVectors: vectors whose squares are beyond single precision have scores like others.
func TestExtremeVectors(t *testing.T) {
	of := func(floats ...float32) *Vector {
		v := &Vector{Kind: Float32, floats: floats}
		v.measure()
		return v
	}
	const tiny, huge = 1e-30, 3e38
	for _, c := range []struct {
		similarity Similarity
		a, b       *Vector
		want       float32
	}{
		{Cosine, of(tiny, 0), of(tiny, 0), 1}, {Cosine, of(huge, 0), of(huge, 0), 1}, {Cosine, of(huge, 0), of(0, tiny), 0.5}, {Cosine, of(huge, huge), of(-huge, -huge), 0},
		{Cosine, of(huge, -huge), of(huge, huge), 0.5}, {DotProduct, of(huge, -huge), of(huge, huge), 0.5}, {DotProduct, of(huge, 0), of(-huge, 0), 0},
		{DotProduct, of(huge, 0), of(huge, 0), float32(math.Inf(1))}, {Euclidean, of(huge, 0), of(-huge, 0), 0}, {Euclidean, of(tiny, 0), of(tiny, 0), 1},
	} {
		if got := c.similarity.score(c.a, c.b); math.Abs(float64(got-c.want)) > 1e-6 || got != got {
			t.Errorf("%d of %v and %v: %v, not %v", c.similarity, c.a.floats, c.b.floats, got, c.want)
		}
	}
}

// FuzzRead: any valid array is read as it is value by value, without a panic.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"{v: [1.5, 2.5, 3.5]}", "{v: [1, NumberLong(2), 3.5]}", "{v: []}", "{v: ['a', 1.0]}", "{v: [NaN, 1.0]}", "{v: {a: 1.0}}", "{v: [1.0, 1e300]}", "{v: [NumberDecimal('1')]}"} {
		f.Add([]byte(bson.MustDoc(s)))
	}
	r := rand.New(rand.NewPCG(3, 4))
	array, floats := randomVector(r, 12)
	f.Add([]byte(bson.Build().Value("v", array).Doc()))
	f.Add([]byte(bson.Build().Value("v", floats).Doc()))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := bson.Doc(data)
		if bson.Validate(d, bson.MaxDepth) != nil {
			return
		}
		v := d.Lookup("v")
		if v.Type != bson.TypeArray && v.Type != bson.TypeBinary {
			return
		}
		n := 3
		if v.Type == bson.TypeArray {
			n = min(v.Doc().Count(), MaxDimensions)
		}
		quick, ok := readBy(false, v, n)
		slow, also := readBy(true, v, n)
		if ok != also {
			t.Fatalf("read %v, value by value %v: %s", ok, also, d)
		}
		for i := range quick.floats {
			if ok && quick.floats[i] != slow.floats[i] {
				t.Fatalf("component %d is %v, and value by value %v", i, quick.floats[i], slow.floats[i])
			}
		}
	})
}

// FuzzQuery: no definition, no query and no document makes the search panic.
func FuzzQuery(f *testing.F) {
	definition := "{fields: [{type: 'vector', path: 'v', numDimensions: 2, similarity: 'cosine'}, {type: 'filter', path: 'a'}]}"
	for _, query := range []string{
		"{index: 'i', path: 'v', queryVector: [1, 0], exact: true, limit: 5, filter: {a: {$in: [1, 2]}}}",
		"{index: 'i', path: 'v', queryVector: [1, 0], numCandidates: 50, limit: 5, filter: {$nor: [{a: {$not: {$gte: 'x'}}}]}, nestedOptions: null}",
	} {
		f.Add([]byte(bson.MustDoc(definition)), []byte(bson.MustDoc(query)), []byte(bson.MustDoc("{v: [1.0, 2.0], a: [1, 'x']}")))
	}
	nested := "{nestedRoot: 'r', storedSource: {include: ['a']}, fields: [{type: 'vector', path: 'r.v', numDimensions: 2, similarity: 'euclidean'}, {type: 'filter', path: 'r.a'}]}"
	f.Add([]byte(bson.MustDoc(nested)), []byte(bson.MustDoc("{index: 'i', path: 'r.v', queryVector: [1, 0], exact: true, limit: 5, parentFilter: {'r.a': {$ne: 1}}, nestedOptions: {scoreMode: 'avg'}}")),
		[]byte(bson.MustDoc("{r: [{v: [1.0, 2.0], a: 1}, {v: 1}, 2]}")))
	f.Fuzz(func(t *testing.T, definition, query, document []byte) {
		for _, d := range [][]byte{definition, query, document} {
			if bson.Validate(d, bson.MaxDepth) != nil {
				return
			}
		}
		for _, explain := range []bool{false, true} {
			q, err := ParseQuery(query, explain)
			d, wrong := ParseDefinition(definition)
			if err != nil || wrong != nil {
				continue
			}
			s, err := d.Search(q, explain)
			if err != nil {
				continue
			}
			if score, ok := s.Score(document); ok && score != score {
				t.Fatal("the score is no number")
			}
		}
	})
}

func benchmarkScore(b *testing.B, packed bool) {
	r := rand.New(rand.NewPCG(5, 6))
	array, floats := randomVector(r, benchDimensions)
	stored := array
	if packed {
		stored = floats
	}
	d, err := ParseDefinition(bson.MustDoc("{fields: [{type: 'vector', path: 'v', numDimensions: 768, similarity: 'cosine'}]}"))
	if err != nil {
		b.Fatal(err)
	}
	q, err := ParseQuery(bson.Build().String("index", "i").String("path", "v").Value("queryVector", array).Bool("exact", true).Int32("limit", 5).Doc(), false)
	if err != nil {
		b.Fatal(err)
	}
	s, err := d.Search(q, false)
	if err != nil {
		b.Fatal(err)
	}
	doc := bson.Build().Int32("_id", 1).Value("v", stored).Doc()
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.Score(doc); !ok {
			b.Fatal("the document is not found")
		}
	}
}

// BenchmarkScoreArray is one document with an array of 768 doubles, BenchmarkScorePacked one with a binary vector.
func BenchmarkScoreArray(b *testing.B)  { benchmarkScore(b, false) }
func BenchmarkScorePacked(b *testing.B) { benchmarkScore(b, true) }
