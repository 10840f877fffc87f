package member

import "testing"

// TestStoreWaitsForOutgoing: a store is closed when the snapshots of it that are sent have ended, and they are told to.
func TestStoreWaitsForOutgoing(t *testing.T) {
	m := &member{ctx: t.Context()}
	m.outgoing.Put(newOutgoing(m.ctx))
	of := m.outgoing.Enter(t.Context())
	ctx, cancel := both(t.Context(), of.ctx)
	defer cancel()
	ended := make(chan func())
	go func() { ended <- m.endOutgoing() }()
	<-ctx.Done()
	select {
	case <-ended:
		t.Fatal("the store is closed while a snapshot of it is read")
	default:
	}
	if m.outgoing.TryEnter() != nil {
		t.Error("another snapshot of the store is begun")
	}
	of.Leave()
	begin := <-ended
	if m.outgoing.TryEnter() != nil {
		t.Error("a snapshot is begun before there is another store")
	}
	begin()
	if m.outgoing.TryEnter() == nil {
		t.Error("no snapshot can be sent of the new store")
	}
}
