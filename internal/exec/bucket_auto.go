package exec

import (
	"context"
	"math"

	"github.com/ebbdb/ebb/internal/accumulator"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// bucketAutoStage is $bucketAuto: all documents are sorted by the value they are grouped by, and then dealt out.
type bucketAutoStage struct {
	op     *Op
	stage  *pipeline.BucketAuto
	sorted Iterator
	keyed  *keyed

	buckets []*autoBucket
	dealt   bool
	next    int
	out     []byte
	held    holding // by the buckets
}

// autoBucket is one bucket.
type autoBucket struct {
	min, max bson.Value
	folds    []accumulator.Fold
}

func newBucketAuto(op *Op, s *pipeline.BucketAuto, in Iterator) Iterator {
	b := &bucketAutoStage{op: op, stage: s, held: holding{op: op}}
	b.keyed = &keyed{op: op, in: in, key: func(d bson.Doc) (bson.Value, error) {
		op.Env.Reset()
		op.Env.Root = d
		v, err := s.GroupBy.Eval(op.Env)
		if err == nil && s.Granularity != nil {
			err = s.Granularity.Check(v)
		}
		return v, err
	}}
	b.sorted = newSortStage(op, keyOrder{op.collator()}, 0, b.keyed)
	return b
}

// keyed puts each document into one of {k: <key>, d: <document>}, and counts them.
type keyed struct {
	op  *Op
	in  Iterator
	key func(bson.Doc) (bson.Value, error)
	n   int64
	buf []byte
}

func (k *keyed) Next(ctx context.Context) (bson.Doc, error) {
	d, err := k.in.Next(ctx)
	if d == nil {
		return nil, err
	}
	v, err := k.key(d)
	if err != nil {
		return nil, err
	}
	if v.IsMissing() {
		v = bson.Null
	}
	k.n++
	var b bson.Builder
	b.Reset(k.buf[:0])
	out := b.Value("k", v).Document("d", d).Bytes()
	k.buf = reusable(out)
	return out, nil
}

func (k *keyed) Close() error { return k.in.Close() }

// keyOrder sorts what keyed gives by the key as it is, arrays as arrays.
type keyOrder struct{ collate bson.Collator }

func (o keyOrder) Key(dst []bson.Value, d bson.Doc, _ sortpattern.Meta) ([]bson.Value, error) {
	return append(dst, d.Index(0)), nil
}

func (o keyOrder) Compare(a, b []bson.Value) int { return bson.CompareWith(a[0], b[0], o.collate) }

func (o keyOrder) Descends() bool { return false }
func (o keyOrder) Collates() bool { return o.collate != nil }

func (s *bucketAutoStage) Next(ctx context.Context) (bson.Doc, error) {
	if !s.dealt {
		if err := s.deal(ctx); err != nil {
			return nil, err
		}
		s.dealt = true
	}
	if s.next == len(s.buckets) {
		return nil, nil
	}
	b := s.buckets[s.next]
	s.next++
	var w bson.Builder
	w.Reset(s.out[:0])
	w.Object("_id").Value("min", b.min).Value("max", b.max).End()
	for i, f := range b.folds {
		v, err := f.Value()
		if err != nil {
			return nil, err
		}
		if v.IsMissing() {
			v = bson.Null
		}
		w.Value(s.stage.Fields[i].Name, v)
	}
	out := w.Bytes()
	s.out = reusable(out)
	s.op.Meta.Clear()
	return out, s.op.carry(ctx, len(out))
}

// deal makes all buckets: each takes its share of the documents, and then all that are equal to its last.
func (s *bucketAutoStage) deal(ctx context.Context) error {
	d, err := s.read(ctx)
	if err != nil || d == nil {
		return err
	}
	size := max(1, int64(math.Round(float64(s.keyed.n)/float64(s.stage.Buckets))))
	for i := int64(0); i < s.stage.Buckets && d != nil; i++ {
		b, err := s.start(d)
		if err != nil {
			return err
		}
		last := i == s.stage.Buckets-1
		for j := int64(1); j < size || last; j++ {
			if d, err = s.read(ctx); err != nil {
				return err
			}
			if d == nil {
				break
			}
			if err := s.add(b, d); err != nil {
				return err
			}
		}
		if !last {
			if d, err = s.absorb(ctx, b); err != nil {
				return err
			}
		}
		s.enter(b)
	}
	if g := s.stage.Granularity; g != nil && len(s.buckets) > 0 {
		s.buckets[0].min = g.RoundDown(s.buckets[0].min)
		b := s.buckets[len(s.buckets)-1]
		b.max = g.RoundUp(b.max)
	}
	return nil
}

func (s *bucketAutoStage) read(ctx context.Context) (bson.Doc, error) { return s.sorted.Next(ctx) }

func (s *bucketAutoStage) start(d bson.Doc) (*autoBucket, error) {
	b := &autoBucket{min: d.Index(0).Clone()}
	s.op.Env.Root = bson.EmptyDoc
	for _, f := range s.stage.Fields {
		init := bson.Missing
		var err error
		if f.Spec.Init != nil {
			if init, err = f.Spec.Init.Eval(s.op.Env); err != nil {
				return nil, err
			}
		}
		fold, err := f.Spec.New(init)
		if err != nil {
			return nil, err
		}
		b.folds = append(b.folds, fold)
	}
	if err := s.held.hold(s.op.callContext(), groupOverhead+int64(2*len(b.min.Data)), s.tooMuch); err != nil {
		return nil, err
	}
	return b, s.add(b, d)
}

func (s *bucketAutoStage) add(b *autoBucket, d bson.Doc) error {
	b.max = d.Index(0).Clone()
	env := s.op.Env
	env.Reset()
	env.Root = d.Index(1).Doc()
	grown := int64(0)
	for i, f := range s.stage.Fields {
		args := make([]bson.Value, len(f.Spec.Args))
		for j, e := range f.Spec.Args {
			var err error
			if args[j], err = e.Eval(env); err != nil {
				return err
			}
		}
		before := b.folds[i].Size()
		if err := b.folds[i].Add(args); err != nil {
			return err
		}
		grown += int64(b.folds[i].Size() - before)
	}
	if grown <= 0 {
		s.held.drop(-grown)
		return nil
	}
	return s.held.hold(s.op.callContext(), grown, s.tooMuch)
}

func (s *bucketAutoStage) tooMuch() error {
	return mongoerr.New(mongoerr.ExceededMemoryLimit, "$bucketAuto used too much memory and cannot spill to disk. Memory limit: %d bytes", s.op.maxMemory())
}

// absorb takes what belongs to b beyond its share, sets its upper boundary and returns the first document behind it.
func (s *bucketAutoStage) absorb(ctx context.Context, b *autoBucket) (bson.Doc, error) {
	g := s.stage.Granularity
	boundary := b.max
	if g != nil {
		boundary = g.RoundUp(b.max)
	}
	for {
		d, err := s.read(ctx)
		if err != nil {
			return nil, err
		}
		if d == nil {
			return nil, nil
		}
		c := bson.CompareWith(boundary, d.Index(0), s.op.collator())
		if g != nil && c > 0 || g == nil && c == 0 {
			if err := s.add(b, d); err != nil {
				return nil, err
			}
			continue
		}
		switch {
		case g == nil:
			b.max = d.Index(0).Clone()
		case boundary.AsDouble() == 0:
			b.max = g.RoundDown(d.Index(0)).Clone()
		default:
			b.max = boundary
		}
		return d, nil
	}
}

// enter appends b; with a granularity buckets start where the one before ends.
func (s *bucketAutoStage) enter(b *autoBucket) {
	if n := len(s.buckets); n > 0 && s.stage.Granularity != nil {
		before := s.buckets[n-1]
		if before.max.AsDouble() == 0 {
			before.max = s.stage.Granularity.RoundDown(b.min)
		}
		b.min = before.max
	}
	s.buckets = append(s.buckets, b)
}

func (s *bucketAutoStage) Close() error {
	s.buckets = nil
	s.held.empty()
	return s.sorted.Close()
}
