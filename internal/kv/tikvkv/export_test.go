package tikvkv

import (
	"errors"

	"github.com/tikv/client-go/v2/txnkv/transaction"
)

// LoseAnswers has the answers to the next commits be lost, whether the cluster gets those or not.
func LoseAnswers(e *Engine, arrives bool, times int) {
	e.commits.turn.Lock()
	defer e.commits.turn.Unlock()
	e.lease.commit = func(t *transaction.KVTxn) error {
		if times--; times < 0 {
			return e.lease.commitOnce(t)
		}
		if arrives {
			if err := e.lease.commitOnce(t); err != nil {
				return err
			}
		}
		return errors.New("the answer is lost")
	}
}

// Parts is how many parts of values are stored.
func Parts(e *Engine) (n int) {
	scan, err := e.store.GetSnapshot(e.views.time()).Iter(e.space.in(partArea), e.space.in(partArea+1))
	if err != nil {
		return -1
	}
	for ; scan.Valid(); n++ {
		if err := scan.Next(); err != nil {
			return -1
		}
	}
	return n
}
