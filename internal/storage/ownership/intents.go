package ownership

import (
	"sync"
	"sync/atomic"
)

// Intents are the keys that transactions of several statements have claimed and not committed yet. Whoever else wants one of them
// waits until that transaction ends, or gives up. A write of its own does not register: it is over soon.
type Intents struct {
	open atomic.Int64 // how many keys there are: most often none, and then nobody takes mu
	mu   sync.Mutex   // guards keys, and is held for moments only
	keys map[string]*Intent
	all  atomic.Int64 // how many transactions are open
}

// Intent is one transaction with its keys.
type Intent struct {
	all  *Intents
	keys []string
	over chan struct{}
}

// NewIntents has none.
func NewIntents() *Intents { return &Intents{keys: map[string]*Intent{}} }

// Begin is a transaction without keys.
func (i *Intents) Begin() *Intent {
	i.all.Add(1)
	return &Intent{all: i, over: make(chan struct{})}
}

// Any says whether a transaction is open.
func (i *Intents) Any() bool { return i.all.Load() > 0 }

// Held is closed when the transaction that has the key ends; nil where none has it.
func (i *Intents) Held(key []byte) <-chan struct{} {
	if i.open.Load() == 0 {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if t := i.keys[string(key)]; t != nil {
		return t.over
	}
	return nil
}

// Take gives the transaction a key, unless another one has it.
func (t *Intent) Take(key []byte) (ok bool) {
	i := t.all
	i.mu.Lock()
	defer i.mu.Unlock()
	switch has := i.keys[string(key)]; has {
	case t:
		return true
	case nil:
	default:
		return false
	}
	name := string(key)
	i.keys[name] = t
	t.keys = append(t.keys, name)
	i.open.Add(1)
	return true
}

// End gives back all keys, and wakes those who wait for one.
func (t *Intent) End() {
	i := t.all
	i.mu.Lock()
	for _, key := range t.keys {
		delete(i.keys, key)
	}
	i.open.Add(-int64(len(t.keys)))
	i.mu.Unlock()
	t.keys = nil
	i.all.Add(-1)
	close(t.over)
}
