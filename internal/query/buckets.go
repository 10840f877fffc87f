package query

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/bson/column"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Limits of a bucket that is shown, those of MongoDB.
const (
	maxBucketMeasurements = 1000
	maxBucketBytes        = 125 << 10
)

// bucketVersion is that of buckets whose columns are plain documents. In those of the later versions they are compressed, by time and as they came.
const (
	bucketVersion     = 1
	lastBucketVersion = 3
)

// findBuckets shows the measurements of coll as MongoDB would keep them, so that they can be dumped. All of them are put into buckets, of which a filter
// takes some: a bucket's _id is the same whatever is asked for. There is nothing that a sort could stand on.
func (e *Engine) findBuckets(ctx context.Context, f Find, call *Call, coll *catalog.Collection) (*Running, error) {
	if !f.Sort.IsEmpty() || !f.Projection.IsEmpty() || f.ReturnKey || f.ShowRecordID || f.Tailable {
		return nil, mongoerr.New(mongoerr.CommandNotSupported, "buckets of %s can be read as they are, without a sort or projection", coll.NS)
	}
	chosen := &chosenBuckets{skip: f.Skip, limit: f.Limit}
	if !f.Filter.IsEmpty() {
		lang, err := e.language(ctx, call, coll)
		if err != nil {
			return nil, err
		}
		chosen.env = lang.env
		options := match.Options{Collation: lang.collation, Exprs: lang.exprs, Scope: lang.scope, Allow: match.AllowMatch}
		if chosen.filter, err = e.filters.Parse(f.Filter, options); err != nil {
			return nil, err
		}
	}
	natural := bson.Build().Int32("$natural", 1).Doc().Value()
	r, err := e.find(ctx, Find{NS: coll.NS, Hint: natural}, call)
	if err != nil {
		return nil, err
	}
	chosen.in = &bucketed{in: r.Iterator, buckets: NewBuckets(coll.Options.TimeSeries)}
	r.Iterator = chosen
	return r, nil
}

// chosenBuckets gives the buckets that are asked for.
type chosenBuckets struct {
	in     exec.Iterator
	filter *match.Filter // nil takes all
	env    *expr.Env
	skip   int64
	limit  int64 // 0 is none
	given  int64
}

// Close implements exec.Iterator.
func (c *chosenBuckets) Close() error { return c.in.Close() }

// Next implements exec.Iterator.
func (c *chosenBuckets) Next(ctx context.Context) (bson.Doc, error) {
	for c.limit == 0 || c.given < c.limit {
		doc, err := c.in.Next(ctx)
		if doc == nil || err != nil {
			return nil, err
		}
		if ok, err := c.takes(doc); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		if c.skip > 0 {
			c.skip--
			continue
		}
		c.given++
		return doc, nil
	}
	return nil, nil
}

func (c *chosenBuckets) takes(doc bson.Doc) (bool, error) {
	if c.filter == nil {
		return true, nil
	}
	return c.filter.Match(c.env, doc)
}

// bucketed puts the measurements of another iterator into buckets.
type bucketed struct {
	in      exec.Iterator
	buckets *Buckets
}

// Close implements exec.Iterator.
func (b *bucketed) Close() error { return b.in.Close() }

// Next implements exec.Iterator.
func (b *bucketed) Next(ctx context.Context) (bson.Doc, error) {
	for {
		doc, err := b.in.Next(ctx)
		if err != nil {
			return nil, err
		}
		if doc == nil {
			return b.buckets.Last(), nil
		}
		if bucket := b.buckets.Add(doc); bucket != nil {
			return bucket, nil
		}
	}
}

// Buckets puts measurements that come in order into buckets, as MongoDB would keep them.
type Buckets struct {
	series *catalog.TimeSeries
	docs   []bson.Doc // of the bucket that is not full yet
	bytes  int
	made   uint32
}

// NewBuckets is for the measurements of a time series.
func NewBuckets(series *catalog.TimeSeries) *Buckets { return &Buckets{series: series} }

// Add takes a measurement, whose time is a date. It gives the bucket that the measurement does not go into any more, nil where there is none.
func (b *Buckets) Add(doc bson.Doc) (full bson.Doc) {
	if len(b.docs) > 0 && (len(b.docs) == maxBucketMeasurements || b.bytes+len(doc) > maxBucketBytes || !b.together(b.docs[0], doc)) {
		full = b.Last()
	}
	b.docs, b.bytes = append(b.docs, doc.Clone()), b.bytes+len(doc)
	return full
}

// Last is the bucket of what was added and not given yet; nil where that is nothing.
func (b *Buckets) Last() bson.Doc {
	if len(b.docs) == 0 {
		return nil
	}
	b.made++
	bucket := b.bucket(b.docs)
	b.docs, b.bytes = nil, 0
	return bucket
}

// together says whether two measurements are of one meta value and one cell.
func (b *Buckets) together(x, y bson.Doc) bool {
	if b.cell(x) != b.cell(y) {
		return false
	}
	mx, my := b.meta(x), b.meta(y)
	return mx.Type == my.Type && bytes.Equal(mx.Data, my.Data)
}

func (b *Buckets) cell(doc bson.Doc) int64 {
	return policy.CellStart(doc.Lookup(b.series.TimeField).Millis(), b.series.SpanSeconds)
}

func (b *Buckets) meta(doc bson.Doc) bson.Value {
	if !b.series.HasOwnMeta() {
		return bson.Missing
	}
	return doc.Lookup(b.series.MetaField)
}

func (b *Buckets) bucket(docs []bson.Doc) bson.Doc {
	start := b.cell(docs[0])
	var id [12]byte
	binary.BigEndian.PutUint32(id[:], uint32(start/1000))
	binary.BigEndian.PutUint32(id[8:], b.made)
	columns := b.columns(docs)
	out := bson.Build().Value("_id", bson.ObjectID(id)).Object("control").Int32("version", bucketVersion)
	out.Object("min")
	for _, c := range columns {
		if c.name == b.series.TimeField {
			out.Date(c.name, start)
			continue
		}
		out.Value(c.name, extreme(c.values, -1))
	}
	out.End().Object("max")
	for _, c := range columns {
		out.Value(c.name, extreme(c.values, 1))
	}
	out.End().End().Value("meta", b.meta(docs[0])).Object("data")
	for _, c := range columns {
		out.Object(c.name)
		for i, at := range c.at {
			out.Value(bson.IndexKey(at), c.values[i])
		}
		out.End()
	}
	return out.End().Doc()
}

// bucketField is one field of a bucket's measurements: its values, and of which measurements they are.
type bucketField struct {
	name   string
	at     []int
	values []bson.Value
}

// columns are the fields of docs but for meta, in the order in which they come up.
func (b *Buckets) columns(docs []bson.Doc) (columns []*bucketField) {
	byName := map[string]*bucketField{}
	for i, doc := range docs {
		for it := doc.Iter(); it.Next(); {
			name := it.Key()
			if b.series.HasOwnMeta() && name == b.series.MetaField {
				continue
			}
			c := byName[name]
			if c == nil {
				c = &bucketField{name: name}
				byName[name] = c
				columns = append(columns, c)
			}
			c.at, c.values = append(c.at, i), append(c.values, it.Value())
		}
	}
	return columns
}

// extreme is the least (-1) or greatest (1) of values. Of documents alone it is one of the extremes of their fields, of
// arrays alone an array of those of their elements.
func extreme(values []bson.Value, sign int) bson.Value {
	best := values[0]
	same := true
	for _, v := range values[1:] {
		same = same && v.Type == best.Type
		if sign*bson.Compare(v, best) > 0 {
			best = v
		}
	}
	if !same || best.Type != bson.TypeObject && best.Type != bson.TypeArray {
		return best
	}
	return extremeOfFields(values, sign)
}

func extremeOfFields(values []bson.Value, sign int) bson.Value {
	var names []string
	fields := map[string][]bson.Value{}
	for _, v := range values {
		for it := v.Doc().Iter(); it.Next(); {
			if fields[it.Key()] == nil {
				names = append(names, it.Key())
			}
			fields[it.Key()] = append(fields[it.Key()], it.Value())
		}
	}
	b := bson.Build()
	for _, name := range names {
		b.Value(name, extreme(fields[name], sign))
	}
	if values[0].Type == bson.TypeArray {
		return b.Doc().ArrayValue()
	}
	return b.Doc().Value()
}

// insertBuckets inserts the measurements in buckets that were dumped.
func (e *Engine) insertBuckets(ctx context.Context, coll *catalog.Collection, docs []bson.Doc, ordered bool, call *Call) (inserted int, refused []WriteError, err error) {
	for i, bucket := range docs {
		measurements, failure := unpack(coll.Options.TimeSeries, bucket)
		if failure == nil {
			var wrong []WriteError
			if _, wrong, err = e.Insert(ctx, coll.NS, measurements, true, call); err != nil {
				return inserted, refused, err
			}
			if len(wrong) > 0 {
				failure = wrong[0].Err
			}
		}
		if failure == nil {
			inserted++
			continue
		}
		if refused = append(refused, WriteError{i, failure}); ordered {
			break
		}
	}
	return inserted, refused, nil
}

// unpack is the measurements of a bucket.
func unpack(t *catalog.TimeSeries, bucket bson.Doc) ([]bson.Doc, error) {
	control, data := bucket.Lookup("control"), bucket.Lookup("data")
	if control.Type != bson.TypeObject || data.Type != bson.TypeObject {
		return nil, badBucket("it needs the documents 'control' and 'data'")
	}
	u := &unpacking{series: t, meta: bucket.Lookup("meta"), place: map[string]int{}}
	read := u.plain
	switch v := control.Doc().Lookup("version"); {
	case !v.IsNumber() || v.AsDouble() < bucketVersion || v.AsDouble() > lastBucketVersion || v.AsDouble() != math.Trunc(v.AsDouble()):
		return nil, mongoerr.New(mongoerr.CommandNotSupported, "buckets of version %s cannot be inserted", v)
	case v.AsDouble() != bucketVersion:
		read = u.compressed
	}
	times := data.Doc().Lookup(t.TimeField)
	if times.IsMissing() {
		return nil, badBucket("it has no times")
	}
	if err := read(times, u.time); err != nil {
		return nil, err
	}
	if count := control.Doc().Lookup("count"); count.IsNumber() && count.AsDouble() != float64(len(u.made)) {
		return nil, badBucket("it counts other measurements than it has")
	}
	for it := data.Doc().Iter(); it.Next(); {
		name := it.Key()
		err := read(it.Value(), func(key string, v bson.Value) error { return u.field(name, key, v) })
		if err != nil {
			return nil, err
		}
	}
	docs := make([]bson.Doc, len(u.made))
	for i, b := range u.made {
		docs[i] = b.Doc()
	}
	return docs, nil
}

// unpacking makes the measurements of a bucket.
type unpacking struct {
	series *catalog.TimeSeries
	meta   bson.Value
	place  map[string]int // of measurements by their keys in the columns
	made   []*bson.Builder
	bytes  int // of the fields
}

// time begins a measurement. All times are looked at first, so that a bucket is there as a whole or not at all.
func (u *unpacking) time(key string, v bson.Value) error {
	switch {
	case v.Type != bson.TypeDate:
		return badTime(u.series)
	case len(u.made) == maxUnpacked || (len(u.made)+1)*len(u.meta.Data) > maxUnpackedBytes:
		return badBucket("it has too many measurements")
	}
	u.place[key] = len(u.made)
	b := bson.Build()
	if u.series.HasOwnMeta() {
		b.Value(u.series.MetaField, u.meta)
	}
	u.made = append(u.made, b)
	return nil
}

func (u *unpacking) field(name, key string, v bson.Value) error {
	i, ok := u.place[key]
	if !ok {
		return badBucket("it has a measurement without a time")
	}
	if u.bytes += len(name) + len(v.Data); u.bytes > maxUnpackedBytes {
		return badBucket("its measurements are too large")
	}
	u.made[i].Value(name, v)
	return nil
}

// plain reads a column that is a document.
func (u *unpacking) plain(c bson.Value, each func(key string, v bson.Value) error) error {
	if c.Type != bson.TypeObject {
		return badBucket("a column is no document")
	}
	for it := c.Doc().Iter(); it.Next(); {
		if err := each(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return nil
}

// compressed reads a column of the later versions.
func (u *unpacking) compressed(c bson.Value, each func(key string, v bson.Value) error) error {
	if c.Type != bson.TypeBinary {
		return badBucket("a column is not compressed")
	}
	subtype, data := c.Binary()
	if subtype != column.Subtype {
		return badBucket("a column is not compressed")
	}
	values, err := column.Decode(data, column.Limits{Values: maxUnpacked, Bytes: maxUnpackedBytes})
	if err != nil {
		return badBucket(err.Error())
	}
	for i, v := range values {
		if v.IsMissing() {
			continue
		}
		if err := each(bson.IndexKey(i), v); err != nil {
			return err
		}
	}
	return nil
}

// Limits of a bucket that is inserted: its measurements, a hundred times what MongoDB puts into one, and what their fields take, and the meta value when each
// of them has it.
const (
	maxUnpacked      = 100_000
	maxUnpackedBytes = 64 << 20
)

func badBucket(why string) error {
	return mongoerr.New(mongoerr.DocumentValidationFailure, "Document failed validation: this is no bucket of measurements: %s", why)
}

// behindBuckets is the time series whose buckets ns would hold, nil for any other name.
func (e *Engine) behindBuckets(ns namespace.NS) *catalog.Collection {
	return e.Store.Catalog().BehindBuckets(ns)
}
