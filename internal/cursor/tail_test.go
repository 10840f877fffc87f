package cursor

import (
	"context"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// held is a source that counts how often it was closed.
type held struct{ closed int }

func (*held) Next(context.Context) (bson.Doc, error) { return nil, nil }
func (*held) Park()                                  {}
func (*held) Held() int64                            { return 0 }
func (*held) Shrink() error                          { return nil }
func (h *held) Close() error                         { h.closed++; return nil }

func all(*Cursor) bool { return true }

func TestAnInvalidatedCursor(t *testing.T) {
	why := mongoerr.New(mongoerr.QueryPlanKilled, "collection dropped")
	for name, c := range map[string]struct {
		then func(r *Registry, id int64) error
		code mongoerr.Code // of a getMore that comes then
	}{
		"fails once": {func(*Registry, int64) error { return nil }, mongoerr.QueryPlanKilled},
		"is killed": {func(r *Registry, id int64) error {
			if !r.Kill(id) {
				return mongoerr.New(mongoerr.CursorNotFound, "not there to be killed")
			}
			return nil
		}, mongoerr.CursorNotFound},
	} {
		for _, busy := range []bool{false, true} {
			r, source := NewRegistry(clock.NewFake(time.Unix(0, 0)), nil), &held{}
			cursor := &Cursor{NS: "d.c", Source: source, NoTimeout: true}
			if err := r.Add(cursor); err != nil {
				t.Fatal(err)
			}
			if busy {
				if _, err := r.Take(cursor.ID, "d.c", "", false); err != nil {
					t.Fatal(err)
				}
			}
			r.Invalidate(all, why)
			if r.Why(cursor) != error(why) {
				t.Errorf("%s: it ended by %v", name, r.Why(cursor))
			}
			if busy {
				if source.closed != 0 {
					t.Errorf("%s: its source was closed while it was read", name)
				}
				r.Put(cursor)
			}
			if source.closed != 1 {
				t.Errorf("%s: its source was closed %d times", name, source.closed)
			}
			if err := c.then(r, cursor.ID); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, code := range []mongoerr.Code{c.code, mongoerr.CursorNotFound} {
				if _, err := r.Take(cursor.ID, "d.c", "", false); !mongoerr.Is(err, code) {
					t.Errorf("%s: %v, want %s", name, err, code.Name())
				}
			}
			if source.closed != 1 {
				t.Errorf("%s: its source was closed %d times in the end", name, source.closed)
			}
		}
	}
}

// One that never times out does when nobody can use it any more.
func TestAnInvalidatedCursorTimesOut(t *testing.T) {
	fake := clock.NewFake(time.Unix(0, 0))
	r := NewRegistry(fake, nil)
	if err := r.Add(&Cursor{NS: "d.c", Source: &held{}, NoTimeout: true}); err != nil {
		t.Fatal(err)
	}
	fake.Advance(IdleTimeout)
	if n := r.Expire(IdleTimeout, nil); n != 0 {
		t.Errorf("%d timed out", n)
	}
	r.Invalidate(all, mongoerr.New(mongoerr.QueryPlanKilled, "collection dropped"))
	if n := r.Expire(IdleTimeout, nil); n != 1 {
		t.Errorf("%d timed out", n)
	}
}
