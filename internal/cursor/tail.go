package cursor

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Tail is a Source whose end may be none: Next is asked again after Park.
type Tail interface {
	Source
	// Tailing says whether documents may come behind the end that Next has met.
	Tailing() bool
	// Inserted is closed when it is time to look again; ok is false when that will never be. Whoever takes it before he looks
	// misses nothing.
	Inserted() (next <-chan struct{}, ok bool)
}

// Resumable is a Source of events, behind each of which a client can go on later.
type Resumable interface {
	Source
	// ResumeToken is where to go on behind what Next has given so far, until Next is called; nil where it is none.
	ResumeToken() bson.Doc
}

// resumes is the source, if it can be resumed.
func (c *Cursor) resumes() Resumable {
	r, ok := c.Source.(Resumable)
	if !ok || r.ResumeToken() == nil {
		return nil
	}
	return r
}

// ResumeToken is where to go on behind the batch, until the next one; nil where the cursor cannot be resumed.
func (c *Cursor) ResumeToken() bson.Doc {
	if r := c.resumes(); r != nil && c.token == nil { // there was no batch yet
		return r.ResumeToken()
	}
	return c.token
}

// goesOn says whether a cursor whose source has no document left stays open.
func (c *Cursor) goesOn() bool {
	t, ok := c.Source.(Tail)
	return ok && c.Tailable && t.Tailing()
}

// Inserted is the source's: what a getMore that found nothing waits for.
func (c *Cursor) Inserted() (next <-chan struct{}, ok bool) {
	t, ok := c.Source.(Tail)
	if !ok {
		return nil, false
	}
	return t.Inserted()
}

// Ended is closed when the cursor is killed or invalidated; Registry.Why says which.
func (c *Cursor) Ended() <-chan struct{} { return c.ended }

// end notes why c may not be used any more. The caller holds the registry's lock.
func (c *Cursor) end(why error) {
	if c.why == nil {
		c.why = why
		close(c.ended)
	}
}

// Why is the reason for which c, which was taken, may not be used any more; nil as long as it may.
func (r *Registry) Why(c *Cursor) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.why
}

// Invalidate has the next getMore of every cursor that match finds fail with why. What they hold is let go of now; the
// cursors are there until then, for whoever kills them.
func (r *Registry) Invalidate(match func(*Cursor) bool, why error) {
	var idle []Source
	r.mu.Lock()
	for _, c := range r.mu.open {
		if c.why != nil || !match(c) {
			continue
		}
		c.end(why)
		if !c.busy {
			idle = append(idle, c.Source)
			c.Source = invalid{why}
		}
	}
	r.mu.Unlock()
	for _, s := range idle {
		_ = s.Close()
	}
}

// invalid is the source of a cursor that was invalidated.
type invalid struct{ why error }

func (s invalid) Next(context.Context) (bson.Doc, error) { return nil, s.why }
func (invalid) Park()                                    {}
func (invalid) Held() int64                              { return 0 }
func (invalid) Shrink() error                            { return nil }
func (invalid) Close() error                             { return nil }

func killed() error {
	return mongoerr.New(mongoerr.CursorKilled, "operation was interrupted because the cursor was killed")
}
