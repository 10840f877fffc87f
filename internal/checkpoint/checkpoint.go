// Package checkpoint is the checkpoints of the store that clients copy: how many there are at most, whose they are, and until when. Each is
// under a lease, which every use of it renews, so that a client that is gone leaves nothing behind. It knows nothing of where they are copied to.
package checkpoint

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

const (
	// MaxOpen is how many there are at one time. Each keeps room on the disk that would be given back otherwise.
	MaxOpen = 2
	// Lease is for how long one lasts that nobody uses.
	Lease = time.Minute
	// maxDigests bounds how many digests of tables are remembered.
	maxDigests = 1 << 18
	// digestStep is how much of a file is read at once to digest it.
	digestStep = 1 << 20
)

var (
	// ErrBusy is of one checkpoint too many.
	ErrBusy = errors.New("as many checkpoints are open as there may be")
	// ErrGone is of a checkpoint that is not there, or no longer.
	ErrGone = errors.New("there is no such checkpoint: it has ended, or nobody has used it for too long")
	// ErrUnable is of an engine that takes none.
	ErrUnable = errors.New("the storage engine takes no checkpoints")
)

// Registry is the open ones.
type Registry struct {
	clock  clock.Clock
	engine kv.Engine
	log    *slog.Logger

	mu struct {
		sync.Mutex
		open    map[string]*Open
		taken   int // places, those of checkpoints that are being taken included
		digests map[string][sha256.Size]byte
		closed  bool
	}
}

// Open is one.
type Open struct {
	kv.Checkpoint
	ID string
	// By is who took it, and Begun when.
	By    string
	Begun time.Time

	used  time.Time // guarded by the registry's mutex, and so are the next
	users int
	ended bool
}

// NewRegistry is for checkpoints of an engine.
func NewRegistry(c clock.Clock, engine kv.Engine, log *slog.Logger) *Registry {
	r := &Registry{clock: c, engine: engine, log: log}
	r.mu.open, r.mu.digests = map[string]*Open{}, map[string][sha256.Size]byte{}
	return r
}

// Begin takes one. by is who asks.
func (r *Registry) Begin(ctx context.Context, by string) (*Open, error) {
	if !r.engine.Capabilities().Checkpoints {
		return nil, ErrUnable
	}
	if err := r.reserve(); err != nil {
		return nil, err
	}
	c, err := r.engine.Checkpoint(ctx)
	if err != nil {
		r.giveBack()
		return nil, err
	}
	o := &Open{Checkpoint: c, ID: newID(), By: by, Begun: r.clock.Now()}
	if !r.add(o) {
		r.giveBack()
		return nil, errors.Join(ErrGone, c.Remove())
	}
	number, _ := c.Last()
	r.log.Info("Backup: a checkpoint is open", "checkpoint", o.ID, "by", by, "files", len(c.Files()), "commit", number)
	return o, nil
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (r *Registry) reserve() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mu.closed:
		return ErrGone
	case r.mu.taken >= MaxOpen:
		return ErrBusy
	}
	r.mu.taken++
	return nil
}

func (r *Registry) giveBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.taken--
}

// add opens one, and forgets digests of tables that are not in it: they are gone.
func (r *Registry) add(o *Open) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return false
	}
	o.used = o.Begun
	r.mu.open[o.ID] = o
	there := map[string]bool{}
	for _, f := range o.Files() {
		there[f.Name] = f.Table
	}
	for name := range r.mu.digests {
		if !there[name] {
			delete(r.mu.digests, name)
		}
	}
	return true
}

// Use renews the lease and keeps the checkpoint until done is called.
func (r *Registry) Use(id string) (o *Open, done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o = r.mu.open[id]
	if o == nil {
		return nil, nil, ErrGone
	}
	o.used = r.clock.Now()
	o.users++
	return o, func() { r.leave(o) }, nil
}

func (r *Registry) leave(o *Open) {
	r.mu.Lock()
	o.users--
	o.used = r.clock.Now()
	last := o.ended && o.users == 0
	r.mu.Unlock()
	if last {
		r.remove(o)
	}
}

// End ends one.
func (r *Registry) End(id string) error {
	if r.end(func(o *Open) bool { return o.ID == id }, "Backup: a checkpoint has been closed") == 0 {
		return ErrGone
	}
	return nil
}

// Expire ends those that nobody has used for too long.
func (r *Registry) Expire() {
	now := r.clock.Now()
	r.end(func(o *Open) bool { return o.users == 0 && now.Sub(o.used) >= Lease }, "Backup: a checkpoint has been closed, for its client has not been heard of")
}

// Close ends all, and lets nobody begin another.
func (r *Registry) Close() {
	r.mu.Lock()
	r.mu.closed = true
	r.mu.Unlock()
	r.end(func(*Open) bool { return true }, "Backup: a checkpoint has been closed with the server")
}

func (r *Registry) end(which func(*Open) bool, says string) (n int) {
	var free []*Open
	r.mu.Lock()
	for id, o := range r.mu.open {
		if !which(o) {
			continue
		}
		n++
		o.ended = true
		delete(r.mu.open, id)
		if o.users == 0 {
			free = append(free, o)
		}
	}
	r.mu.Unlock()
	for _, o := range free {
		r.log.Info(says, "checkpoint", o.ID, "by", o.By)
		r.remove(o)
	}
	return n
}

func (r *Registry) remove(o *Open) {
	if err := o.Remove(); err != nil {
		r.log.Error("Backup: a checkpoint's files cannot be removed; the next start removes them", "checkpoint", o.ID, "error", err.Error())
	}
	r.giveBack()
}

// All are the open ones, oldest first.
func (r *Registry) All() (all []*Open) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.mu.open {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *Open) int {
		return cmp.Or(a.Begun.Compare(b.Begun), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Digest is the SHA-256 of one of the files of a checkpoint. That of a table is remembered, since a table never changes; whoever digests
// one looks whether it is damaged, too.
func (r *Registry) Digest(ctx context.Context, o *Open, f kv.CheckpointFile) (sum [sha256.Size]byte, err error) {
	if f.Table {
		if sum, ok := r.remembered(f.Name); ok {
			return sum, nil
		}
		if err := o.Check(ctx, f.Name); err != nil {
			return sum, err
		}
	}
	h, b := sha256.New(), make([]byte, digestStep)
	for at := int64(0); at < f.Bytes; {
		if err := context.Cause(ctx); err != nil {
			return sum, err
		}
		n, err := o.ReadAt(f.Name, b[:min(digestStep, f.Bytes-at)], at)
		if n == 0 {
			return sum, errors.Join(io.ErrUnexpectedEOF, err)
		}
		h.Write(b[:n])
		at += int64(n)
	}
	sum = [sha256.Size]byte(h.Sum(nil))
	if f.Table {
		r.remember(f.Name, sum)
	}
	return sum, nil
}

func (r *Registry) remembered(name string) (sum [sha256.Size]byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum, ok = r.mu.digests[name]
	return sum, ok
}

func (r *Registry) remember(name string, sum [sha256.Size]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.mu.digests) < maxDigests {
		r.mu.digests[name] = sum
	}
}
