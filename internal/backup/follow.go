package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/backup/place"
	"github.com/ebbdb/ebb/internal/backup/repository"
	"github.com/ebbdb/ebb/internal/clock"
)

// Entry is an entry of an oplog.
type Entry struct {
	At repository.Timestamp
	// Doc is the BSON.
	Doc []byte
}

// Tail reads a server's oplog.
type Tail interface {
	// Next gives some entries behind those that it gave before; it waits for them for a while. Where there are none, it says up to which
	// timestamp there is surely none. The entries are good until it is called again.
	Next(context.Context) (entries []Entry, until repository.Timestamp, err error)
	Close()
}

// Followed is a Source whose oplog can be read.
type Followed interface {
	Source
	// Tail reads on behind an entry, which it gives as well: nil where the server does not have it any more.
	Tail(ctx context.Context, behind repository.Timestamp) (entry []byte, t Tail, err error)
}

const (
	// shipEvery is how often what has come is shipped, and coverEvery how often it is noted how far that is.
	shipEvery  = 5 * time.Second
	coverEvery = 30 * time.Second
	// retryFirst is how long the follower waits before it tries again what has failed, and retryMost how long when it goes on failing.
	retryFirst = time.Second
	retryMost  = 30 * time.Second
	// lostTries is how often a server has to say that it does not have an entry: one that has just started may not show its last ones yet.
	lostTries = 4
	// segmentBytes is after how many bytes of entries a segment is shipped at once.
	segmentBytes = 16 << 20
)

// ErrNoOplog is of a server that has none.
var ErrNoOplog = errors.New("the server has no oplog: it is no member of a replica set (--replSet)")

// Following is what Follow tells.
type Following struct {
	// Backup is behind which the oplog is shipped; Taken says that it was taken just now, since none was there that the server's oplog goes on behind.
	Backup string
	Taken  *Taken
	// Segments and Entries were shipped since the beginning, up to Last.
	Segments, Entries int
	Last              repository.Timestamp
	// Trouble is why nothing is shipped at the moment, and Retry after how long that is tried again; nil where all is well.
	Trouble error
	Retry   time.Duration
}

// final is an error that goes on however often something is tried.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Follow ships a server's oplog behind a backup until ctx ends: behind the newest one that it can go on behind, or a new one. When server or
// repository do not answer it goes on trying, and goes on where it was. It ends when the server does not have its place in the oplog any more, or
// the backup is removed. tell is told when it begins, after each segment, and when something fails and when that is over.
func Follow(ctx context.Context, s Followed, r *repository.Repository, c clock.Clock, p Progress, tell func(Following)) (err error) {
	f := &follower{source: s, repository: r, clock: c, tell: tell}
	tail, err := f.begin(ctx, p)
	if err != nil {
		return err
	}
	f.tell(f.Following)
	for err == nil && ctx.Err() == nil {
		err = f.run(ctx, tail)
		tail.Close()
		if ctx.Err() == nil && !errors.As(err, &final{}) {
			tail, err = f.again(ctx, err)
		}
	}
	if ctx.Err() != nil {
		return f.ship(context.WithoutCancel(ctx)) // what has come is shipped at the end, too
	}
	return err
}

// again waits, and reads on where it was, as soon as that can be done.
func (f *follower) again(ctx context.Context, why error) (t Tail, err error) {
	lost := 0
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		f.Trouble, f.Retry = why, wait
		f.tell(f.Following)
		if err := clock.Wait(ctx, f.clock, wait); err != nil {
			return nil, err
		}
		if t, why = f.resume(ctx); why == nil {
			f.Trouble, f.Retry = nil, 0
			f.tell(f.Following)
			return t, nil
		}
		if errors.Is(why, errLost) {
			lost++
		}
		if lost == lostTries {
			why = final{why}
		}
		if errors.As(why, &final{}) {
			return nil, why
		}
	}
}

// errLost is of a server that does not have the entry that was read last.
var errLost = errors.New("the server's oplog does not go on behind what was shipped: what comes next would be a gap. Start anew, which takes another backup and follows behind that")

// resume ships what is left, and reads on.
func (f *follower) resume(ctx context.Context) (Tail, error) {
	if err := f.ship(ctx); err != nil {
		return nil, err
	}
	entry, t, err := f.source.Tail(ctx, f.Last)
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		return nil, fmt.Errorf("it does not have entry %s any more: %w", f.Last, errLost)
	case digestOf(entry) != f.digest:
		t.Close()
		return nil, final{fmt.Errorf("its entry %s is another: %w", f.Last, errLost)}
	}
	return t, nil
}

// follower ships.
type follower struct {
	Following
	source     Followed
	repository *repository.Repository
	clock      clock.Clock
	tell       func(Following)

	digest  string // of the last entry
	segment repository.Segment
	entries []byte
	shipped time.Time
	covered time.Time
}

// begin finds where to go on, or takes a backup.
func (f *follower) begin(ctx context.Context, p Progress) (Tail, error) {
	f.shipped, f.covered = f.clock.Now(), f.clock.Now()
	ids, err := f.repository.IDs(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Backward(ids) {
		m, err := f.repository.Manifest(ctx, id)
		if err != nil && !place.IsFault(err) {
			return nil, err
		}
		if err != nil || m.Oplog == nil || m.Oplog.From.IsZero() || m.Source != f.source.Name() {
			continue
		}
		t, err := f.goOn(ctx, m)
		if t != nil || err != nil {
			return t, err
		}
		break // older ones end earlier
	}
	if f.Taken, err = Take(ctx, f.source, f.repository, f.clock, p); err != nil {
		return nil, err
	}
	m := f.Taken.Manifest
	if m.Oplog == nil || m.Oplog.From.IsZero() {
		return nil, fmt.Errorf("backup %s was taken, and cannot be followed: %w", m.ID, ErrNoOplog)
	}
	t, err := f.goOn(ctx, m)
	if err == nil && t == nil {
		err = fmt.Errorf("the oplog has lost entry %s already, which was its last a moment ago", m.Oplog.From)
	}
	return t, err
}

// goOn reads on behind what is shipped behind a backup; nil where the server's oplog does not go on there.
func (f *follower) goOn(ctx context.Context, m *repository.Manifest) (Tail, error) {
	behind, digest := m.Oplog.From, ""
	all, err := f.repository.Segments(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	if len(all) > 0 {
		s, err := f.repository.ReadSegment(ctx, all[len(all)-1], nil)
		switch {
		case place.IsFault(err):
			return nil, nil // and so nobody goes on there
		case err != nil:
			return nil, err
		}
		behind, digest = s.Last, s.LastSHA256
	}
	entry, t, err := f.source.Tail(ctx, behind)
	if err != nil || t == nil {
		return nil, err
	}
	if digest != "" && digestOf(entry) != digest { // another server's, or of before a restore
		t.Close()
		return nil, nil
	}
	f.Backup, f.Last, f.digest = m.ID, behind, digestOf(entry)
	return t, nil
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (f *follower) run(ctx context.Context, t Tail) error {
	for ctx.Err() == nil {
		entries, until, err := t.Next(ctx)
		if err != nil {
			return fmt.Errorf("read the oplog behind %s: %w", f.Last, err)
		}
		for _, e := range entries {
			if err := f.add(ctx, e); err != nil {
				return err
			}
		}
		now := f.clock.Now()
		if len(f.entries) > 0 && now.Sub(f.shipped) >= shipEvery {
			if err := f.ship(ctx); err != nil {
				return err
			}
		}
		if len(f.entries) == 0 && len(entries) == 0 && !until.IsZero() && now.Sub(f.covered) >= coverEvery {
			if err := f.cover(ctx, until); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *follower) add(ctx context.Context, e Entry) error {
	if e.At.Compare(f.Last) <= 0 {
		return final{fmt.Errorf("the server gives entry %s behind %s", e.At, f.Last)}
	}
	if len(e.Doc) > repository.MaxEntryBytes {
		return final{fmt.Errorf("entry %s has %d bytes, and %d are allowed", e.At, len(e.Doc), repository.MaxEntryBytes)}
	}
	if f.segment.Entries == 0 {
		f.segment.Prev, f.segment.First = f.Last, e.At
	}
	f.segment.Entries++
	f.digest = digestOf(e.Doc)
	f.segment.Last, f.segment.LastSHA256 = e.At, f.digest
	f.entries = append(f.entries, e.Doc...)
	f.Last = e.At
	if len(f.entries) >= segmentBytes {
		return f.ship(ctx)
	}
	return nil
}

// ship ships what has come.
func (f *follower) ship(ctx context.Context) error {
	f.shipped = f.clock.Now()
	if f.segment.Entries == 0 {
		return nil
	}
	switch there, err := f.repository.HasBackup(ctx, f.Backup); {
	case err != nil:
		return err
	case !there:
		return final{fmt.Errorf("backup %s, behind which the oplog was shipped, has been removed: start anew to go on behind another", f.Backup)}
	}
	if err := f.repository.PutSegment(ctx, f.Backup, f.segment, f.entries); err != nil {
		return err
	}
	f.Segments, f.Entries = f.Segments+1, f.Entries+f.segment.Entries
	f.segment, f.entries = repository.Segment{}, f.entries[:0]
	f.tell(f.Following)
	if f.clock.Now().Sub(f.covered) < coverEvery {
		return nil
	}
	return f.cover(ctx, f.Last)
}

// cover notes that all up to a timestamp was shipped, without which nobody would know that the last segments are lost.
func (f *follower) cover(ctx context.Context, until repository.Timestamp) error {
	if err := f.repository.Cover(ctx, f.Backup, repository.Coverage{After: f.Last, Until: until}); err != nil {
		return err
	}
	f.covered = f.clock.Now()
	return nil
}
