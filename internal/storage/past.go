package storage

import (
	"context"
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/expiryclock"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/past"
)

// A store with an oplog can be read as of a time before. The engine keeps no versions by time, but a snapshot that is held keeps what it
// sees. So each time that somebody is told what he has read as of, the snapshot is held for a while, by that time (Remember). Whoever
// asks for the time finds it (Recall), and so does who asks for one between the same two entries of the oplog: nothing happened there.
// All other times are too old.
//
// A store that follows another tells the time of the last entry that it has applied. The next may have any later one, which the other gives.
// So a time is not there before an entry has it, or a later one.

// Past is a state of before.
type Past = past.Past[PastState]

// PastState is what belongs to a Past beside its snapshot.
type PastState struct {
	now                int64 // by which what has expired is hidden
	hidesUpTo          int64
	version            *version
	hiding             expiryclock.State
	swept, relocations uint64
	commits            uint64 // how many there had been, or more: a number that LastCommit has not reached again
}

// Catalog is the catalogue as it was then.
func (p *PastState) Catalog() *catalog.Catalog { return p.version.catalog }

// ForgetPasts lets go of what has been held of before for longer than window, in milliseconds, which counts from now on.
func (s *Store) ForgetPasts(window int64) { s.pasts.Forget(s.Now(), window) }

// TrimPasts is ForgetPasts for who looks now and then. Where the disk is full it lets go of all, so that what is deleted gives its place back.
func (s *Store) TrimPasts(window int64) {
	s.ForgetPasts(window)
	if mongoerr.Is(s.Room(), mongoerr.OutOfDiskSpace) {
		s.pasts.ForgetAll()
	}
}

// Pasts is how many states of before are held.
func (s *Store) Pasts() int { return s.pasts.Len() }

// Remember holds the present state of the store, in which what has expired by now is hidden, in milliseconds since the epoch. Its time is behind all that
// anybody knows of, and before all that is still to come. Where the store follows it is that of the last entry, and what has expired by then is hidden.
func (s *Store) Remember(ctx context.Context, now int64) (*Past, error) {
	if s.options.Follows {
		return s.rememberApplied(ctx, now)
	}
	commits := s.LastCommit()
	if p := s.pasts.Newest(now); p != nil && p.State.now == now && p.State.commits == commits {
		return p, nil
	}
	at, taken := oplog.Timestamp(0), s.Now()
	state, snapshot, err := s.still(ctx, func() { at = s.logClock.Tell(now) })
	if err != nil {
		return nil, err
	}
	state.now, state.commits = now, commits
	return s.pasts.Hold(past.New(at, taken, snapshot, state)), nil
}

// rememberApplied is Remember for a store that follows.
func (s *Store) rememberApplied(ctx context.Context, now int64) (*Past, error) {
	if p := s.pasts.Exact(s.LastLogged(), s.Now()); p != nil {
		return p, nil
	}
	at, taken := oplog.Timestamp(0), s.Now()
	state, snapshot, err := s.still(ctx, func() { at = s.logClock.Last() })
	if err != nil {
		return nil, err
	}
	state.now = min(endOf(at), now)
	return s.pasts.Hold(past.New(at, taken, snapshot, state)), nil
}

// endOf is the end of the second of t, by which what has expired is hidden as of t, in milliseconds since the epoch.
func endOf(t oplog.Timestamp) int64 { return (int64(t.Seconds())+1)*1000 - 1 }

// still is the present state, and a snapshot of it. look is called while nobody commits.
func (s *Store) still(ctx context.Context, look func()) (p PastState, snapshot kv.Snapshot, err error) {
	p.hidesUpTo = s.options.HidesUpTo()
	snapshot, err = s.engine.Still(ctx, func() {
		p.version, p.swept, p.relocations, p.hiding = s.current.Load(), s.sweeps.Load(), s.relocations.Load(), s.expiryClock.State()
		look()
	})
	return p, snapshot, err
}

// Recall is the state as of a time that is not after ClusterTime or, where the store follows, not after LastLogged. now is the asking operation's, in
// milliseconds since the epoch.
func (s *Store) Recall(ctx context.Context, t oplog.Timestamp, now int64) (*Past, error) {
	for {
		if p := s.pasts.Exact(t, s.Now()); p != nil {
			return p, nil
		}
		hides := endOf(t)
		if s.pasts.IsBefore(hides, s.Now()) {
			return nil, past.TooOld(t)
		}
		around, err := s.stretch(ctx, t)
		switch {
		case err != nil:
			return nil, err
		case around.until != 0:
			p := s.pasts.Within(t, around.from, around.until, s.Now())
			if p == nil {
				return nil, past.TooOld(t)
			}
			p.State.now, p.State.commits = min(hides, now), 0
			return s.pasts.Hold(p), nil
		}
		taken, passed := s.Now(), false
		state, snapshot, err := s.still(ctx, func() { passed = s.logClock.Last() > max(t, around.newest) })
		if err != nil {
			return nil, err
		}
		if !passed {
			state.now = min(hides, now)
			return s.pasts.Hold(past.New(t, taken, snapshot, state)), nil
		}
		_ = snapshot.Close() // something was committed meanwhile, which the oplog has now
	}
}

// stretch is a time in which nothing was committed: from is that of the last entry before it, until that of the first behind it, 0 where there is none yet, and
// newest that of the last that there is. Notes that are about no collection are in between.
type stretch struct{ from, until, newest oplog.Timestamp }

// maxNotes is how many notes a stretch may have on either side of a time: an hour's. Past it the next counts as any entry.
const maxNotes = 360

// stretch is the one around t. Where the oplog does not reach back to t it has nothing in it.
func (s *Store) stretch(ctx context.Context, t oplog.Timestamp) (around stretch, err error) {
	nothing := stretch{t, t, t}
	view, err := s.View(ctx)
	if err != nil {
		return nothing, err
	}
	defer view.Close()
	r, ok := view.Collection(catalog.OplogNS)
	if !ok {
		return nothing, nil
	}
	next := layout.SequenceID(uint64(t) + 1)
	before, err := r.firstEntry(RecordScan{High: next, Reverse: true})
	if err != nil || before.at == 0 {
		return nothing, err
	}
	behind, err := r.firstEntry(RecordScan{Low: next})
	if behind.changes {
		around.until = behind.at
	}
	around.from, around.newest = before.at, max(before.latest, behind.latest)
	return around, err
}

// foundEntry is where a scan of the oplog ends: at the first entry that may have changed something, or behind all notes. latest is that of the latest looked at;
// both are 0 when there are none.
type foundEntry struct {
	at, latest oplog.Timestamp
	changes    bool
}

// firstEntry finds the first entry of a scan of the oplog that may have changed something.
func (r *Reader) firstEntry(scan RecordScan) (found foundEntry, err error) {
	c, err := r.Scan(scan)
	if err != nil {
		return found, err
	}
	defer c.Close()
	for n := 0; !found.changes && c.Next(); n++ {
		entry := c.Record()
		found.at = oplog.Timestamp(binary.BigEndian.Uint64(entry.ID))
		found.latest = max(found.latest, found.at)
		found.changes = n >= maxNotes || entry.Doc.Lookup("op").Str() != "n" || entry.Doc.Lookup("ns").Str() != ""
	}
	return found, c.Err()
}

// ViewPast is ViewAt for who reads the state p.
func (s *Store) ViewPast(ctx context.Context, p *Past, now int64) (*View, error) {
	snapshot, err := s.pasts.Share(p, s.Now())
	if err != nil {
		return nil, err
	}
	snapshot.Within(ctx)
	of := &p.State
	v := s.newView(ctx, of.version, snapshot, snapshot, now, of.hiding)
	v.past, v.swept, v.relocations = of, of.swept, of.relocations
	return v, nil
}

// beginIn is BeginAt for a transaction that reads the state p, or the present where that is nil.
func (s *Store) beginIn(ctx context.Context, now int64, p *Past) (*Txn, error) {
	if p == nil {
		return s.BeginAt(ctx, now)
	}
	snapshot, err := s.pasts.Share(p, s.Now())
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	t, err := s.engine.BeginAt(snapshot)
	if err != nil {
		return nil, err
	}
	of := &p.State
	txn := s.newTxn(ctx, of.version, t, now, of.hiding, of.swept)
	txn.view.past, txn.view.relocations = of, of.relocations
	return txn, nil
}
