package exec

import (
	"context"
	"errors"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestWindowsAreInterrupted: a window function that looks at row after row for one document ends soon after the operation has been stopped.
func TestWindowsAreInterrupted(t *testing.T) {
	const many = 10 * stepsPerAsk
	op := newTestOp(&collections{}, nil)
	op.Env = op.newEnv()
	rows := &windowRows{op: op, held: holding{op: op}}
	for range many {
		if err := rows.add(context.Background(), bson.EmptyDoc); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errStopped)
	op.ctx = ctx
	looked, err := 0, error(nil)
	for ; err == nil && looked < many; looked++ {
		err = rows.Eval(looked, nil, nil)
	}
	if !errors.Is(err, errStopped) || looked > stepsPerAsk {
		t.Errorf("%v, having looked at %d rows", err, looked)
	}
}
