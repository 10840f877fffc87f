package command

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/patience"
)

// TestLogInHashesInTurn: the password of a login within the server is hashed when the login has its turn, for which it waits once, and when there is
// a place for that.
func TestLogInHashesInTurn(t *testing.T) {
	h := newLogins(t)
	who := h.conn("1").who(auth.Name{Name: "both", DB: "admin"})
	for range patience.Free + 1 {
		h.server.patience.Failed(who, h.clock.Now())
	}
	for range maxHashing {
		h.server.hashing <- struct{}{}
	}
	begun := h.clock.Now()
	ended := make(chan error)
	go func() { ended <- h.server.LogIn(t.Context(), h.conn("1"), "admin", "both", "pw") }()
	for h.clock.Waiting() <= cleaners {
		select {
		case err := <-ended:
			t.Fatal("the login has not waited", err)
		default:
			runtime.Gosched()
		}
	}
	h.clock.Advance(patience.Least)
	<-h.server.hashing
	if err := <-ended; err != nil || h.clock.Now().Sub(begun) != patience.Least {
		t.Error(h.clock.Now().Sub(begun), err)
	}
}

// TestLogInHashesFewAtOnce: a login that has to wait for others' passwords to be hashed ends with whoever has asked for it.
func TestLogInHashesFewAtOnce(t *testing.T) {
	h := newLogins(t)
	for range maxHashing {
		h.server.hashing <- struct{}{}
	}
	gone := errors.New("gone")
	ctx, hangUp := context.WithCancelCause(t.Context())
	hangUp(gone)
	if err := h.server.LogIn(ctx, h.conn("1"), "admin", "both", "pw"); !errors.Is(err, gone) {
		t.Error(err)
	}
}
