package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// minSpill is what a stage has before it goes on in files because the server is short of memory. With less it waits: many
// small files would take longer.
const minSpill = 1 << 20

// holding is what one stage keeps in memory. It is counted twice: against what one stage may have, and as part of what the
// operation has of the server's.
type holding struct {
	op    *Op
	bytes int64
}

// shared is what the stages of pipelines that run at once, as those of a $facet, hold together: no more than one stage may
// where they can go on in files, however many they are.
type shared struct{ bytes int64 }

// sharedParts is into how many parts of what one stage may hold these stages divide it: one with less is left alone, since
// many small files would take longer.
const sharedParts = 25

// tooMuchShared says whether a stage has to go on in files for n bytes more, because of what others hold beside it.
func (h *holding) tooMuchShared(n int64) bool {
	most := h.op.maxMemory()
	return h.op.shared != nil && h.op.AllowDiskUse && h.op.shared.bytes+n > most && h.bytes+n > most/sharedParts
}

// count takes note that the stage holds n bytes more, or less.
func (h *holding) count(n int64) {
	h.bytes += n
	if h.op.shared != nil {
		h.op.shared.bytes += n
	}
}

// add takes note of n bytes more. full says that they do not fit: the stage spills, after which it drops what it had, or
// fails. An error is that of the server, whose memory is used up.
func (h *holding) add(ctx context.Context, n int64) (full bool, err error) {
	if h.bytes+n > h.op.maxMemory() || h.tooMuchShared(n) {
		h.charge(n)
		return true, nil
	}
	if h.take(n) {
		return false, nil
	}
	if h.op.AllowDiskUse && h.bytes+n >= minSpill {
		h.charge(n)
		return true, nil
	}
	return false, h.wait(ctx, n)
}

// fits takes note of n bytes more if that fits, or soon does, for a stage that can do without them, only slower.
func (h *holding) fits(ctx context.Context, n int64) bool {
	return h.bytes+n <= h.op.maxMemory() && h.wait(ctx, n) == nil
}

// hold is add for a stage that cannot spill. What is beyond its bound is an error of the stage's.
func (h *holding) hold(ctx context.Context, n int64, tooMuch func() error) error {
	if h.bytes+n > h.op.maxMemory() {
		return tooMuch()
	}
	return h.wait(ctx, n)
}

// take takes n bytes if they are there, perhaps after other stages of the operation went on in files for it.
func (h *holding) take(n int64) bool {
	if !h.op.Memory.Take(n) {
		if !h.op.AllowDiskUse || h.op.Memory.Used()-h.bytes < minShrink || h.op.root().Shrink() != nil || !h.op.Memory.Take(n) {
			return false
		}
	}
	h.count(n)
	return true
}

// wait takes n bytes as soon as they are there.
func (h *holding) wait(ctx context.Context, n int64) error {
	if h.take(n) {
		return nil
	}
	if err := h.op.Memory.Wait(ctx, n); err != nil {
		return err
	}
	h.count(n)
	return nil
}

// charge takes note of n bytes that are there, whatever that comes to.
func (h *holding) charge(n int64) {
	h.op.Memory.Charge(n)
	h.count(n)
}

// drop forgets n bytes.
func (h *holding) drop(n int64) {
	h.op.Memory.Give(n)
	h.count(-n)
}

// empty forgets everything.
func (h *holding) empty() {
	if h.bytes != 0 {
		h.drop(h.bytes)
	}
}

// Shrinker is a stage that can part with what it keeps in memory. It is asked while the operation is parked, or while
// another of its stages needs the memory.
type Shrinker interface {
	// Shrink moves it to a file, or forgets what can be found again. The document returned last stays as it is.
	Shrink() error
}

// Holds enters a stage, to be shrunk with the operation.
func (op *Op) holds(s Shrinker) { op.shrinkers = append(op.shrinkers, s) }

// Shrink has all stages part with memory.
func (op *Op) Shrink() error {
	for _, s := range op.shrinkers {
		if err := s.Shrink(); err != nil {
			return err
		}
	}
	for _, s := range op.subs {
		if err := s.Shrink(); err != nil {
			return err
		}
	}
	return nil
}

// A document of more than largeDocument bytes counts as carried: it is there several times while it goes through the stages,
// as it was read, as each stage makes it, and in the reply.
const (
	largeDocument = 256 << 10
	carriedTimes  = 3
)

// carry waits until there is memory for a document of n bytes on its way through the operation's stages. Smaller ones than
// the largest so far need none.
func (op *Op) carry(ctx context.Context, n int) error {
	if n <= largeDocument {
		return nil
	}
	op = op.root()
	if n <= op.carried {
		return nil
	}
	if err := op.Memory.Wait(ctx, carriedTimes*int64(n-op.carried)); err != nil {
		return err
	}
	op.carried = n
	return nil
}

// reusable is the memory of a document that a stage has given, for its next one; nil for a large one, which is left to the collector: it would be
// held for as long as the pipeline runs, by each of its stages.
func reusable(given []byte) []byte {
	if cap(given) > maxReused {
		return nil
	}
	return given
}

// maxReused is how large the documents are at most whose memory a stage keeps.
const maxReused = 64 << 10

// pinned is the document that a stage makes several of, and holds until it has. A large one is counted: each stage of a pipeline may hold another.
type pinned struct{ holding }

func (p *pinned) pin(ctx context.Context, n int) error {
	if p.empty(); n <= maxReused {
		return nil
	}
	return p.wait(ctx, int64(n))
}

// rest gives back what was taken for large documents that are on no way any more.
func (op *Op) rest() {
	op = op.root()
	if op.carried > 0 {
		op.Memory.Give(carriedTimes * int64(op.carried))
		op.carried = 0
	}
}

// root is the operation that op runs inside of.
func (op *Op) root() *Op {
	for op.parent != nil {
		op = op.parent
	}
	return op
}

// callContext is that of the call under way, for what is deep inside of a stage.
func (op *Op) callContext() context.Context {
	if op = op.root(); op.ctx == nil {
		return context.Background()
	}
	return op.ctx
}

// minShrink is what a stage must hold for a file to be worth it.
const minShrink = 256 << 10

// spilled notes that the operation, and those around it, went on in files.
func (op *Op) spilled() {
	for o := op; o != nil; o = o.parent {
		o.UsedDisk = true
	}
}

// shortOfMemory says whether an error is the server's, whose memory is used up, or a stage's own.
func shortOfMemory(err error) bool {
	return mongoerr.Is(err, mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed) || mongoerr.Is(err, mongoerr.ExceededMemoryLimit)
}
