package command

import (
	"context"
	"errors"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/storage"
)

func dataSizeCommands() []*Command {
	return []*Command{{Name: "dataSize", Aliases: []string{"datasize"}, Needs: Needs{Also: needsDataSize}, Doc: "Measures the documents of a collection, or of a range of a key.", Run: dataSize}}
}

// dataSizeRequest is a dataSize as the client asked for it.
type dataSizeRequest struct {
	ns             namespace.NS
	key, low, high bson.Doc
	estimate       bool
	// bytes and documents are what ends the measuring when there is more; 0 for no limit.
	bytes, documents int64
}

// dataSizeReply is what was measured. found says that there is such a collection, and reached that a limit ended it.
type dataSizeReply struct {
	size, n        int64
	found, reached bool
}

func dataSize(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required(op.Name())
	name, _ := a.String(op.Name())
	r := dataSizeRequest{ns: namespace.Split(strings.Clone(name)), key: a.Doc("keyPattern"), low: a.Doc("min"), high: a.Doc("max")}
	r.estimate = a.SafeBool("estimate", false)
	r.bytes, _ = a.Int("maxSize")
	r.documents, _ = a.Int("maxObjects")
	if err := a.Done(); err != nil {
		return nil, err
	}
	if r.ns.DB == "" || r.ns.Coll == "" || !strings.Contains(name, ".") {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified '%s'", name)
	}
	m, err := op.measure(&r)
	if err != nil {
		return nil, err
	}
	millis := clock.Millis(op.Clock) - op.Now
	b := bson.Build().Int64("size", m.size).Int64("numObjects", m.n).Int64("millis", millis)
	if m.found {
		b.Bool("estimate", r.estimate)
	}
	if m.reached {
		b.Bool("maxReached", true)
	}
	return b.Doc(), nil
}

func (op *Op) measure(r *dataSizeRequest) (m dataSizeReply, err error) {
	view, err := op.Query.Store.ViewAt(op.Ctx, op.Now)
	if err != nil {
		return m, err
	}
	defer view.Close()
	coll := view.Catalog().Collection(r.ns)
	switch {
	case coll == nil:
		return m, nil
	case coll.IsView() || coll.IsTimeSeries():
		return m, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", r.ns)
	}
	ranged, err := r.check(coll.Indexes)
	if err != nil {
		return m, err
	}
	limited := (r.bytes != 0 || r.documents != 0) && !r.estimate
	if !ranged && !limited {
		reader, _ := view.CollectionByID(coll.ID)
		return wholeSize(reader)
	}
	return op.documentsSize(r)
}

func wholeSize(r *storage.Reader) (m dataSizeReply, err error) {
	m.found = true
	if m.n, err = r.Count(); err == nil {
		m.size, err = r.Bytes()
	}
	return m, err
}

// check says whether a range is asked for, and whether there is an index for it.
func (r *dataSizeRequest) check(indexes []*index.Definition) (ranged bool, err error) {
	switch {
	case r.low == nil && r.high == nil:
		return false, nil
	case r.low == nil || r.high == nil:
		return false, mongoerr.New(mongoerr.BadValue, "only one of min or max specified")
	case r.key == nil:
		r.key = keyOf(r.low)
	}
	for _, d := range indexes {
		if d.Kind == index.Ordered && prefixOf(r.key, d.Key) && d.PartialFilter == nil && !d.Sparse {
			return true, nil
		}
	}
	return false, mongoerr.New(mongoerr.OperationFailed, "couldn't find valid index containing key pattern")
}

// keyOf is the key pattern of which bound is a bound.
func keyOf(bound bson.Doc) bson.Doc {
	b := bson.Build()
	for it := bound.Iter(); it.Next(); {
		b.Int32(it.Key(), 1)
	}
	return b.Doc()
}

func prefixOf(key, of bson.Doc) bool {
	other := of.Iter()
	for it := key.Iter(); it.Next(); {
		if !other.Next() || other.Key() != it.Key() || bson.Compare(it.Value(), other.Value()) != 0 {
			return false
		}
	}
	return true
}

// documentsSize measures what a find, between the bounds if there are any, gives.
func (op *Op) documentsSize(r *dataSizeRequest) (m dataSizeReply, err error) {
	m.found = true
	find := query.Find{NS: r.ns}
	if r.low != nil {
		if bson.CompareDocs(r.low, r.high, nil) >= 0 {
			return m, nil
		}
		find.Hint, find.Min, find.Max = r.key.Value(), r.low, r.high
	}
	running, err := op.Query.Find(op.Ctx, find, op.call())
	if err != nil {
		return m, err
	}
	err = running.All(context.WithoutCancel(op.Ctx), func(d bson.Doc) error {
		m.size += int64(len(d))
		m.n++
		if r.bytes != 0 && m.size > r.bytes || r.documents != 0 && m.n > r.documents {
			m.reached = true
			return errEnough
		}
		return op.Ctx.Err()
	})
	if err == errEnough {
		err = nil
	}
	return m, err
}

// errEnough ends a measuring.
var errEnough = errors.New("enough")
