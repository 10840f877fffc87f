package raftlog

import (
	"context"
	"encoding/binary"
	"testing"
)

// asking is a machine whose writers ask where their commits are as soon as they are applied.
type asking struct {
	Machine
	t *testing.T
	m *Member
}

func (a *asking) Apply(_ context.Context, e Entry) error {
	if n := e.number(); n > 0 {
		if index, known := a.m.IndexOf(n); known && index < e.Index {
			a.t.Errorf("commit %d is said to be at %d, and is at %d", n, index, e.Index)
		}
	}
	return nil
}

// TestIndexOfCommits: where a commit is in the log is not told before it is known, and never as too early: members that have the log up to there would be
// taken for having it.
func TestIndexOfCommits(t *testing.T) {
	m := &Member{}
	m.quit, m.cancel = context.WithCancelCause(t.Context())
	machine := &asking{t: t, m: m}
	m.o.Machine = machine
	m.applied.number, m.applied.found, m.applied.foundAt, m.applied.index = 5, 5, 12, 10 // the store has commit 5, and the log is applied from 10 on
	commit := func(index, number uint64) Entry {
		return Entry{Index: index, Term: 1, Commit: binary.AppendUvarint([]byte{1}, number)} // as one begins
	}
	expect := func(number, index uint64, known bool) {
		t.Helper()
		if at, ok := m.IndexOf(number); ok != known || ok && at != index {
			t.Errorf("commit %d: %d, %v; want %d, %v", number, at, ok, index, known)
		}
	}
	apply := func(entries ...Entry) {
		t.Helper()
		if _, err := m.applyAll(entries, Role{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	expect(5, 12, true)
	expect(6, 0, false)
	apply(commit(11, 4), commit(12, 5)) // once more, after a start
	expect(5, 12, true)
	expect(6, 0, false)
	apply(Entry{Index: 13, Term: 2}, Entry{Index: 14, Term: 2}, commit(15, 6))
	expect(6, 15, true)
	expect(5, 15, true) // a little behind
	expect(7, 0, false)
	apply(commit(16, 7))
	expect(7, 16, true)
	expect(6, 15, true)
}
