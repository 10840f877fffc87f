package command

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/serverlog"
)

// chore is work that is done beside operations, a round at a time, until ctx ends. It waits before each. What the log says of a round that failed is
// the chore's.
func (s *Server) chore(ctx context.Context, every time.Duration, failed string, round func(context.Context) error) {
	for clock.Wait(ctx, s.Clock, every) == nil {
		if err := s.round(ctx, failed, round); err != nil && ctx.Err() == nil {
			s.Log.Error(failed, "error", serverlog.Client(err.Error()))
		}
	}
}

// round ends by a panic as by an error: the server goes on, as it does where an operation panics, and so does the chore.
func (s *Server) round(ctx context.Context, failed string, round func(context.Context) error) error {
	defer func() {
		if panicked := recover(); panicked != nil {
			s.Log.Error(failed, "panic", serverlog.Panic(panicked), serverlog.Stack())
		}
	}()
	return round(ctx)
}

// unfailing is a round that has no error.
func unfailing(round func()) func(context.Context) error {
	return func(context.Context) error {
		round()
		return nil
	}
}

// unlocked is a round that is left out while fsync locks the server: it writes.
func (s *Server) unlocked(round func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if !s.Writes.TryEnter() {
			return nil
		}
		defer s.Writes.Leave()
		return round(ctx)
	}
}
