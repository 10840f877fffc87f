package tikvkv

import (
	"errors"
	"slices"
	"time"

	"github.com/tikv/client-go/v2/txnkv/transaction"
)

// removeBatch is how many keys of a range one transaction deletes.
const removeBatch = 1 << 12

// removeRange deletes what is committed in a range, one batch after the other. Readers see none of it before the next group is visible.
func (e *Engine) removeRange(start, end []byte) error {
	s, err := e.look()
	if err != nil {
		return err
	}
	defer s.Close()
	from, to := e.space.bounds(start, end)
	for {
		r, err := s.read()
		if err != nil {
			return err
		}
		r.SetKeyOnly(true)
		r.SetScanBatchSize(removeBatch)
		scan, err := r.Iter(from, to)
		if err != nil {
			return reading("scan", err)
		}
		var keys [][]byte
		for scan.Valid() {
			keys = append(keys, scan.Key())
			if len(keys) == removeBatch {
				break
			}
			if err := scan.Next(); err != nil {
				return reading("scan", err)
			}
		}
		scan.Close()
		if len(keys) == 0 {
			return nil
		}
		if err := e.remove(keys); err != nil {
			return err
		}
		if len(keys) < removeBatch {
			return nil
		}
		from = append(slices.Clone(keys[len(keys)-1]), 0)
	}
}

// remove deletes pairs, by their stored keys, outside of groups. The slot that it writes is its own, and has the same purpose as theirs.
func (e *Engine) remove(keys [][]byte) error {
	l := e.lease
	l.outside.Lock()
	defer l.outside.Unlock()
	long := e.commits.forgetLong(keys)
	e.removed++
	_, err := l.write(slots, slotValue{number: e.removed}, func(t *transaction.KVTxn) error {
		for _, key := range keys {
			if err := t.Delete(key); err != nil {
				return err
			}
		}
		for key, n := range long {
			for i := range n {
				if err := t.Delete(e.space.part([]byte(key), i)); err != nil {
					return err
				}
			}
		}
		return nil
	}, func(time.Duration, error) {})
	if errors.Is(err, ErrLost) {
		e.lose(err)
	}
	return err
}
