package command

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// TestChore: a round that panics or fails is told of, and the next one comes in its time.
func TestChore(t *testing.T) {
	var log bytes.Buffer
	c := clock.NewFake(time.Unix(0, 0))
	s := &Server{Config: Config{Clock: c, Log: slog.New(slog.NewTextHandler(&log, nil))}}
	rounds := 0
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go s.chore(ctx, time.Minute, "The cellar could not be swept", func(context.Context) error {
			switch rounds++; rounds {
			case 1:
				panic(errors.New("a spider"))
			case 2:
				return errors.New("a broken broom")
			}
			return nil
		})
		for want := 1; want <= 3; want++ {
			synctest.Wait()
			c.Advance(time.Minute)
			if synctest.Wait(); rounds != want {
				t.Fatalf("%d rounds instead of %d", rounds, want)
			}
		}
	})
	for _, want := range []string{"The cellar could not be swept", "panic", "TestChore", "a broken broom"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log.String())
		}
	}
}
