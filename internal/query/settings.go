package query

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/plancache"
	"github.com/ebbdb/ebb/internal/planner"
)

// Setting is what an operator has set for queries of one shape. It is not changed once it is set.
type Setting struct {
	// Hash is the shape's.
	Hash string
	// Doc is the settings as $querySettings shows them; Query is the query that they were set by and Shape its shape, which are
	// nil when they were set by hash.
	Doc, Query, Shape bson.Doc
	// Reject has queries of the shape fail.
	Reject bool
	// Hints are the indexes that they may use, collection by collection.
	Hints []IndexHint
}

// IndexHint is the indexes that queries of a shape may use of one collection, as names, key patterns and $natural.
type IndexHint struct {
	NS      namespace.NS
	Allowed bson.Doc
}

// maxSettingBytes is how large all settings may be together: the size of one document, as which a cluster would keep them.
const maxSettingBytes = bson.MaxDocSize

// settingOverhead is what the names of a setting's fields take in that document.
const settingOverhead = 128

// Settings are all settings, by the hash of the shape. The zero value is empty.
type Settings struct {
	any atomic.Bool // whether there are any, so that queries need not make out their shapes for nothing
	mu  struct {
		sync.Mutex // guards all, in the order in which they were first set
		all        []*Setting
	}
}

// Any says whether there is any setting.
func (s *Settings) Any() bool { return s.any.Load() }

// All are all settings, in the order in which they were first set.
func (s *Settings) All() []*Setting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.all)
}

// Get is the setting for the shape with the hash, nil when there is none.
func (s *Settings) Get(hash string) *Setting {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(hash); i >= 0 {
		return s.mu.all[i]
	}
	return nil
}

// find is the place of a hash. The caller holds the lock.
func (s *Settings) find(hash string) int {
	return slices.IndexFunc(s.mu.all, func(x *Setting) bool { return x.Hash == hash })
}

// Change puts what f makes of the setting for hash, nil when there is none, in its place.
func (s *Settings) Change(hash string, f func(old *Setting) (*Setting, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(hash)
	var old *Setting
	if i >= 0 {
		old = s.mu.all[i]
	}
	next, err := f(old)
	if err != nil {
		return err
	}
	if s.bytes()-old.bytes()+next.bytes() > maxSettingBytes {
		return mongoerr.New(mongoerr.BSONObjectTooLarge, "cannot modify query settings: the total size exceeds %d bytes", maxSettingBytes)
	}
	if i >= 0 {
		s.mu.all[i] = next
	} else {
		s.mu.all = append(s.mu.all, next)
	}
	s.any.Store(true)
	return nil
}

// Remove takes the setting for hash away, if there is one.
func (s *Settings) Remove(hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.all = slices.DeleteFunc(s.mu.all, func(x *Setting) bool { return x.Hash == hash })
	s.any.Store(len(s.mu.all) > 0)
}

// Replace puts all in the place of what there is.
func (s *Settings) Replace(all []*Setting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.all = slices.Clone(all)
	s.any.Store(len(all) > 0)
}

// bytes is the size of all. The caller holds the lock.
func (s *Settings) bytes() int {
	n := 0
	for _, x := range s.mu.all {
		n += x.bytes()
	}
	return n
}

func (x *Setting) bytes() int {
	if x == nil {
		return 0
	}
	return settingOverhead + len(x.Hash) + len(x.Doc) + len(x.Query) + len(x.Shape)
}

// settle finds what is set for the operation with the shape, which is asked for only when anything is set at all.
func (e *Engine) settle(call *Call, ns namespace.NS, shape func() string) {
	if e.Settings.Any() && !InternalNamespace(ns) {
		call.setting = e.Settings.Get(ShapeHash(shape()))
	}
}

// InternalNamespace says whether ns is the server's own, whose queries have no settings.
func InternalNamespace(ns namespace.NS) bool {
	return ns.DB == "admin" || ns.DB == "config" || ns.DB == "local" || ns.IsSystem()
}

// rejected is the error of an operation that is not to be run.
func (c *Call) rejected() error {
	if c.setting == nil || !c.setting.Reject {
		return nil
	}
	return mongoerr.New(mongoerr.QueryRejectedBySettings, "Query rejected by admin query settings")
}

// heed keeps to the indexes that x allows on ns. ok is false when it says nothing of ns. Where all documents have to be
// looked at and x does not allow that, the plan is as if nothing had been set.
func (x *Setting) heed(ns namespace.NS, c planner.Collection, q planner.Query) (plan *planner.Plan, ok bool) {
	i := slices.IndexFunc(x.Hints, func(h IndexHint) bool { return h.NS == ns })
	if i < 0 {
		return nil, false
	}
	h := x.Hints[i]
	c.Indexes = slices.DeleteFunc(slices.Clone(c.Indexes), func(i planner.Index) bool { return !plancache.Names(h.Allowed, i.Name, i.Key) })
	q.Hint = bson.Missing
	plan, err := planner.Choose(c, q)
	if err != nil || strings.HasPrefix(plan.Summary(), "COLLSCAN") && !h.natural() {
		return nil, false
	}
	return plan, true
}

// natural says whether all documents may be looked at.
func (h IndexHint) natural() bool {
	for it := h.Allowed.Iter(); it.Next(); {
		switch v := it.Value(); {
		case v.Type == bson.TypeString && v.Str() == "$natural", v.Type == bson.TypeObject && v.Doc().FirstKey() == "$natural":
			return true
		}
	}
	return false
}
