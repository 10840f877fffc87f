package storage

import "sync"

// insertNotifier wakes those who wait for something to happen to a collection: documents that were added to a capped one, or its
// end. However many wait, it is one channel, which the next happening closes; where nobody waits it is none.
type insertNotifier struct {
	mu   sync.Mutex
	next chan struct{}
}

func (n *insertNotifier) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

func (n *insertNotifier) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}

// Inserted is closed by the next commit that adds documents to the capped collection, and when the collection is changed,
// renamed or dropped. Who takes it before opening a View misses nothing that the View does not show. There is none of a
// collection that is not there, which ok says.
func (s *Store) Inserted(collection uint32) (next <-chan struct{}, ok bool) {
	c := s.current.Load().collections[collection]
	if c == nil {
		return nil, false
	}
	return c.state.inserts.wait(), true
}

// tellOfChange wakes those who wait for news of collections that n no longer has as they were in v.
func (v *version) tellOfChange(n *version) {
	for id, c := range v.collections {
		if n.collections[id] != c {
			c.state.inserts.tell()
		}
	}
}
