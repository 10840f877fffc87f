package tikvkv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/rangetombstone"
)

// feed is what other servers follow this one by (Follower): the groups that became visible lately, each once and in their order. Nobody is told unasked:
// who wants to read asks what has come since, and knows all that anybody was acknowledged before it asked.
//
// It keeps groups as long as somebody has asked lately, up to maxFeedBytes. Who was away for longer begins anew (ErrBehind).
//
// A group has the keys of what it writes, and short values alone: what is to be read of the others lies in TiKV. A large one has but those keys without which
// nobody knows what it means, and has whoever follows empty his row cache.
//
// Invariants: places count the groups from one on, without a gap; a group is there before those are told who wait for its commits.
type feed struct {
	mu     sync.Mutex // guards the rest, and is held for moments only
	now    Told       // without groups
	asked  time.Duration
	on     bool
	groups []bson.Doc // of the places up to now.Place
	bytes  int
	next   chan struct{} // closed by the next group; nil as long as nobody waits for one
}

// Told is what the server that works on a keyspace tells others: all up to a place, or some of that.
type Told struct {
	// Place is that of the last group that is told of, TS a timestamp by which all up to it is read, and nothing behind it.
	Place, TS uint64
	// Number and Millis are those of the last commit.
	Number uint64
	Millis int64
	// Groups are those behind the place that was asked for. More says that there are others, and that TS is no timestamp yet.
	Groups []bson.Doc
	More   bool
}

const (
	// maxFeedBytes is how much is kept, largeGroup from when on a group is large, maxFedGroup how much of it may be told, and maxTellBytes how much one answer
	// has, or one group that is larger.
	maxFeedBytes = 32 << 20
	largeGroup   = 1 << 20
	maxFedGroup  = 8 << 20
	maxTellBytes = 4 << 20
	// maxFedValue is how long a value may be that a group has.
	maxFedValue = 256
	// feedTime is how long groups are kept for one who has asked.
	feedTime = 30 * time.Second
)

// ErrBehind says that it is not known any more what came behind the place that somebody asks from.
var ErrBehind = errors.New("tikvkv: what came since then is not kept any more")

// Latest is where who follows begins. What comes from then on is kept for it.
func (e *Engine) Latest() (Told, error) {
	f := &e.feed
	f.mu.Lock()
	f.ask(clock.Monotonic(e.options.Clock))
	told := f.now
	f.mu.Unlock()
	return told, e.mayTell()
}

// Since is what came behind a place.
func (e *Engine) Since(place uint64) (Told, error) {
	told, err := e.feed.since(place, clock.Monotonic(e.options.Clock))
	if err != nil {
		return told, err
	}
	return told, e.mayTell()
}

// Await returns when there is a group behind a place, or when ctx ends or the engine does.
func (e *Engine) Await(ctx context.Context, place uint64) {
	next := e.feed.await(place)
	if next == nil {
		return
	}
	select {
	case <-next:
	case <-ctx.Done():
	case <-e.ctx.Done():
	}
}

// Place is that of the last group that became visible.
func (e *Engine) Place() uint64 {
	e.feed.mu.Lock()
	defer e.feed.mu.Unlock()
	return e.feed.now.Place
}

// await is closed by the next group; nil where there is one behind the place.
func (f *feed) await(place uint64) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now.Place > place {
		return nil
	}
	if f.next == nil {
		f.next = make(chan struct{})
	}
	return f.next
}

// mayTell says whether nobody else could have committed anything before what is told was looked up.
func (e *Engine) mayTell() error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	if err := e.held(); err != nil {
		return unavailable(err)
	}
	return nil
}

// ask has groups be kept. The caller holds mu.
func (f *feed) ask(now time.Duration) { f.on, f.asked = true, now }

func (f *feed) since(place uint64, now time.Duration) (Told, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ask(now)
	first := f.now.Place - uint64(len(f.groups)) // the place before the first group that is kept
	if place < first || place > f.now.Place {
		return Told{}, ErrBehind
	}
	told, size := f.now, 0
	for _, g := range f.groups[place-first:] {
		if size += len(g); size > maxTellBytes && len(told.Groups) > 0 {
			told.More = true
			break
		}
		told.Groups = append(told.Groups, g)
	}
	told.Place = place + uint64(len(told.Groups))
	return told, nil
}

// begin is called before the first group.
func (f *feed) begin(ts, number uint64, millis int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = Told{TS: ts, Number: number, Millis: millis}
}

// refresh gives what there is a later timestamp.
func (f *feed) refresh(ts uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now.TS = max(f.now.TS, ts)
}

// wants says whether groups are kept at all.
func (f *feed) wants(now time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.on && now-f.asked > feedTime {
		f.on = false
		f.forget()
	}
	return f.on
}

// forget lets go of all groups. The caller holds mu.
func (f *feed) forget() { f.groups, f.bytes = nil, 0 }

// add has a group be told that becomes visible, nil where nobody wants it or it cannot be told, and has it be seen here at the same moment: nobody sees it at
// one server, and not at another one later.
func (f *feed) add(g bson.Doc, ts, number uint64, millis int64, publish func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	publish()
	f.now = Told{Place: f.now.Place + 1, TS: ts, Number: number, Millis: millis}
	if f.next != nil {
		close(f.next)
		f.next = nil
	}
	if g == nil {
		f.forget()
		return
	}
	f.groups, f.bytes = append(f.groups, g), f.bytes+len(g)
	for f.bytes > maxFeedBytes {
		f.bytes -= len(f.groups[0])
		f.groups[0] = nil
		f.groups = f.groups[1:]
	}
}

// tell is a group as others are told of it by a timestamp; nil where nobody wants to know, or it is too large.
func (c *committer) tell(g *group, ts uint64) bson.Doc {
	if !c.engine.feed.wants(clock.Monotonic(c.clock)) {
		return nil
	}
	told, err := g.encode(ts)
	if err != nil {
		c.log.Warn("What a commit means could not be told to other servers, which begin anew", "error", err)
	}
	return told
}

// The form of a group is a BSON document, so that more can be added: its timestamp; its commits as kv.Commit has them; the range tombstones that are new or
// different after it, as they are stored and under their keys; the keys of those that are gone; and whether keys are left out.
//
//	ts, commits: [commit], put: [key, tombstone, key, tombstone, …], gone: [key], large

// encode is a group as others are told of it; nil where that is too large.
func (g *group) encode(ts uint64) (bson.Doc, error) {
	size := 0
	g.each(func(_ *pending, op kv.Op) { size += len(op.Key) + min(len(op.Value), maxFedValue) })
	large := size > largeGroup
	b := bson.Build().Int64("ts", int64(ts)).Array("commits")
	for i, p := range g.commits {
		encoded, err := toldOf(p.Commit, large).AppendBinary(nil)
		if err != nil {
			return nil, err
		}
		b.Binary(bson.IndexKey(i), 0, encoded)
	}
	put, gone := g.tombstones.Changes(g.committer.tombstones)
	space := g.committer.engine.space
	b.End().Array("put")
	for i, t := range put {
		b.Binary(bson.IndexKey(2*i), 0, space.tombstone(t.Start)).Binary(bson.IndexKey(2*i+1), 0, space.encodeTombstone(t))
	}
	b.End().Array("gone")
	for i, start := range gone {
		b.Binary(bson.IndexKey(i), 0, space.tombstone(start))
	}
	if b.End().Bool("large", large); b.Len() > maxFedGroup {
		return nil, nil
	}
	return b.Doc(), nil
}

// toldOf is a commit as others are told of it: without what it claims, and without long values, but for those without which nobody knows what it means; of a
// large group without all other keys as well.
func toldOf(c *kv.Commit, large bool) *kv.Commit {
	w := &kv.WriteList{Deleted: c.Ranges(), Added: c.Counters()}
	short := &kv.Commit{Number: c.Number, Time: c.Time, Writes: w, Meaning: c.Meaning}
	keep := func(list *[]kv.Op) func(kv.Op) {
		return func(op kv.Op) {
			needed := c.Meaning != nil && c.Meaning.Needs(op.Key)
			switch {
			case needed:
			case large:
				return
			case len(op.Value) > maxFedValue:
				op.Value, op.Cached = nil, false
			}
			*list = append(*list, op)
		}
	}
	c.Each(keep(&w.Ops))
	stamped := keep(&short.Stamped)
	for _, op := range c.Stamped {
		stamped(op)
	}
	return short
}

var errBrokenGroup = errors.New("tikvkv: what another server tells of a group is broken")

// fed is a group as it was told.
type fed struct {
	ts      uint64
	commits []*kv.Commit
	// tombstones are those after it.
	tombstones *rangetombstone.Set
	// large says that it has not all keys that were written.
	large bool
}

// decodeGroup is the inverse of encode, behind what has some tombstones.
func (k keyspace) decodeGroup(d bson.Doc, before *rangetombstone.Set) (g fed, err error) {
	ts, commits, put, gone := d.Lookup("ts"), d.Lookup("commits"), d.Lookup("put"), d.Lookup("gone")
	if ts.Type != bson.TypeInt64 || commits.Type != bson.TypeArray || put.Type != bson.TypeArray || gone.Type != bson.TypeArray {
		return g, errBrokenGroup
	}
	g = fed{ts: uint64(ts.Int64()), tombstones: before, large: d.Lookup("large").Truthy()}
	encoded, err := binaries(commits)
	if err != nil {
		return g, err
	}
	for _, one := range encoded {
		c, err := kv.DecodeCommit(one)
		if err != nil {
			return g, fmt.Errorf("%w: %w", errBrokenGroup, err)
		}
		g.commits = append(g.commits, c)
	}
	pairs, err := binaries(put)
	if err != nil {
		return g, err
	}
	keys, err := binaries(gone)
	if err != nil {
		return g, err
	}
	if len(pairs) == 0 && len(keys) == 0 {
		return g, nil
	}
	after := map[string]rangetombstone.Tombstone{}
	for _, t := range before.All() {
		after[string(k.tombstone(t.Start))] = t
	}
	for _, key := range keys {
		delete(after, string(key))
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if len(pairs[i]) <= len(k.root) {
			return g, errBrokenGroup
		}
		if after[string(pairs[i])], err = k.decodeTombstone(pairs[i], pairs[i+1]); err != nil {
			return g, err
		}
	}
	all := make([]rangetombstone.Tombstone, 0, len(after))
	for _, t := range after {
		all = append(all, t)
	}
	g.tombstones = rangetombstone.SetOf(all)
	return g, nil
}

// binaries are the elements of an array of those.
func binaries(v bson.Value) (all [][]byte, err error) {
	for it := v.Doc().Iter(); it.Next(); {
		e := it.Value()
		if e.Type != bson.TypeBinary {
			return nil, errBrokenGroup
		}
		_, bytes := e.Binary()
		all = append(all, bytes)
	}
	return all, nil
}
