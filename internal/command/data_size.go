package command

import (
	"context"
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
}

func dataSize(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Required(op.Name())
	name, _ := a.String(op.Name())
	r := dataSizeRequest{ns: namespace.Split(strings.Clone(name)), key: a.Doc("keyPattern"), low: a.Doc("min"), high: a.Doc("max")}
	r.estimate = a.SafeBool("estimate", false)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if r.ns.DB == "" || r.ns.Coll == "" || !strings.Contains(name, ".") {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified '%s'", name)
	}
	size, n, found, err := op.measure(&r)
	if err != nil {
		return nil, err
	}
	millis := clock.Millis(op.Clock) - op.Now
	b := bson.Build().Int64("size", size).Int64("numObjects", n).Int64("millis", millis)
	if found {
		b.Bool("estimate", r.estimate)
	}
	return b.Doc(), nil
}

// measure counts what r asks for; found is false where there is no such collection.
func (op *Op) measure(r *dataSizeRequest) (size, n int64, found bool, err error) {
	view, err := op.Query.Store.ViewAt(op.Ctx, op.Now)
	if err != nil {
		return 0, 0, false, err
	}
	defer view.Close()
	coll := view.Catalog().Collection(r.ns)
	switch {
	case coll == nil:
		return 0, 0, false, nil
	case coll.IsView() || coll.IsTimeSeries():
		return 0, 0, false, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", r.ns)
	}
	ranged, err := r.check(coll.Indexes)
	if err != nil {
		return 0, 0, true, err
	}
	reader, _ := view.CollectionByID(coll.ID)
	if ranged {
		size, n, err = op.rangeSize(r)
	} else {
		size, n, err = wholeSize(reader)
	}
	return size, n, true, err
}

func wholeSize(r *storage.Reader) (size, n int64, err error) {
	if n, err = r.Count(); err == nil {
		size, err = r.Bytes()
	}
	return size, n, err
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

// rangeSize measures what a find between the bounds gives.
func (op *Op) rangeSize(r *dataSizeRequest) (size, n int64, err error) {
	if bson.CompareDocs(r.low, r.high, nil) >= 0 {
		return 0, 0, nil
	}
	running, err := op.Query.Find(op.Ctx, query.Find{NS: r.ns, Hint: r.key.Value(), Min: r.low, Max: r.high}, op.call())
	if err != nil {
		return 0, 0, err
	}
	err = running.All(context.WithoutCancel(op.Ctx), func(d bson.Doc) error {
		size += int64(len(d))
		n++
		return op.Ctx.Err()
	})
	return size, n, err
}
