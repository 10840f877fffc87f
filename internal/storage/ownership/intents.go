package ownership

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Intents are the keys that transactions of several statements have claimed and not committed yet, and those of records that they have put
// somewhere. Whoever else wants one of them waits until that transaction ends, or gives up, or passes it over (Spare). A write of its own does
// not register: it is over soon.
type Intents struct {
	open atomic.Int64 // how many keys there are: most often none, and then nobody takes mu
	mu   sync.Mutex   // guards the rest and what Intents have, and is held for moments only
	keys map[string]*Intent
	all  map[*Intent]struct{} // those that have any
}

// Intent is one transaction with its keys.
type Intent struct {
	all    *Intents
	keys   []string // grows only
	over   chan struct{}
	waited []uint32 // collections of which somebody has passed over a key
}

// NewIntents has none.
func NewIntents() *Intents { return &Intents{keys: map[string]*Intent{}, all: map[*Intent]struct{}{}} }

// Begin is a transaction without keys.
func (i *Intents) Begin() *Intent { return &Intent{all: i, over: make(chan struct{})} }

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

// Spare says whether a transaction has the key, which is one of a collection. Then the caller passes it over, and is told of the collection
// when the transaction ends (Intent.End).
func (i *Intents) Spare(key []byte, collection uint32) bool {
	if i.open.Load() == 0 {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	t := i.keys[string(key)]
	if t != nil {
		t.wait(collection)
	}
	return t != nil
}

// SpareAll is Spare for keys that transactions had a moment ago; ok is false when one of them has ended since.
func (i *Intents) SpareAll(keys []string, collection uint32) (ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	ok = true
	for _, key := range keys {
		if t := i.keys[key]; t != nil {
			t.wait(collection)
		} else {
			ok = false
		}
	}
	return ok
}

// wait notes that somebody waits for keys of a collection; the caller holds mu.
func (t *Intent) wait(collection uint32) {
	if !slices.Contains(t.waited, collection) {
		t.waited = append(t.waited, collection)
	}
}

// Between are the keys from low up to, and without, high that transactions have, in order.
func (i *Intents) Between(low, high []byte) (found []string) {
	if i.open.Load() == 0 {
		return nil
	}
	i.mu.Lock()
	lists := make([][]string, 0, len(i.all))
	for t := range i.all {
		lists = append(lists, t.keys)
	}
	i.mu.Unlock()
	from, to := string(low), string(high)
	for _, keys := range lists {
		for _, key := range keys {
			if from <= key && key < to {
				found = append(found, key)
			}
		}
	}
	slices.SortFunc(found, strings.Compare)
	return found
}

// Take gives the transaction a key, unless another one has it. isNew says that it had not got it before.
func (t *Intent) Take(key []byte) (isNew, ok bool) {
	i := t.all
	i.mu.Lock()
	defer i.mu.Unlock()
	switch has := i.keys[string(key)]; has {
	case t:
		return false, true
	case nil:
	default:
		return false, false
	}
	name := string(key)
	i.keys[name] = t
	t.keys = append(t.keys, name)
	i.all[t] = struct{}{}
	i.open.Add(1)
	return true, true
}

// End gives back all keys, and wakes those who wait for one. waited are the collections of which somebody has passed over some.
func (t *Intent) End() (waited []uint32) {
	i := t.all
	i.mu.Lock()
	for _, key := range t.keys {
		delete(i.keys, key)
	}
	delete(i.all, t)
	i.open.Add(-int64(len(t.keys)))
	waited, t.keys, t.waited = t.waited, nil, nil
	i.mu.Unlock()
	close(t.over)
	return waited
}
