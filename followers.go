package ebb

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/server"
)

// followers are the servers that read what this one works on, as far as they have asked lately (command.Beside).
type followers struct {
	server *Server
	mu     sync.Mutex // guards heard
	heard  map[string]time.Duration
}

const (
	// followerTime is how long one counts as there that has asked, and callTime bounds one call of it.
	followerTime = 4 * idlePause
	callTime     = 2 * time.Second
	// maxFollowers bounds how many are called.
	maxFollowers = 100

	besideName = "ebbBeside"
)

// hear notes that the one at an address has asked.
func (f *followers) hear(address string) {
	now := clock.Monotonic(clock.Wall())
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.heard[address]; !known {
		for other, at := range f.heard {
			if now-at > followerTime {
				delete(f.heard, other)
			}
		}
		if f.heard == nil {
			f.heard = map[string]time.Duration{}
		}
		if len(f.heard) >= maxFollowers {
			return
		}
	}
	f.heard[address] = now
}

// there are the addresses of those that have asked lately.
func (f *followers) there() (all []string) {
	now := clock.Monotonic(clock.Wall())
	f.mu.Lock()
	defer f.mu.Unlock()
	for address, at := range f.heard {
		if now-at <= followerTime {
			all = append(all, address)
		}
	}
	return all
}

// AskAll implements command.Beside.
func (f *followers) AskAll(ctx context.Context, what bson.Doc) map[string]bson.Doc {
	var mu sync.Mutex
	var calls sync.WaitGroup
	all := map[string]bson.Doc{}
	for _, address := range f.there() {
		calls.Go(func() {
			said, err := f.call(ctx, address, what)
			if err != nil {
				f.server.log.For("NETWORK").Debug("A server that reads beside this one was not asked", "address", address, "error", err.Error())
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all[address] = said
		})
	}
	calls.Wait()
	return all
}

// Ask implements command.Beside.
func (f *followers) Ask(ctx context.Context, address string, what bson.Doc) (bson.Doc, error) {
	if !slices.Contains(f.there(), address) {
		return nil, mongoerr.New(mongoerr.HostUnreachable, "no server reads here that is reached at %s", address)
	}
	return f.call(ctx, address, what)
}

// call asks one of them for something.
func (f *followers) call(ctx context.Context, address string, what bson.Doc) (bson.Doc, error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), callTime)
	defer cancel()
	conn, err := peer.Dial(ctx, address, f.server.peerOptions())
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", address, err)
	}
	defer conn.Close()
	return conn.Call(ctx, bson.Build().Document(besideName, what).String("$db", "admin").Doc())
}

// isForBeside says whether a request is that of the server that works on the data to one that reads.
func isForBeside(body bson.Doc) bool { return body.FirstKey() == besideName }

// answerBeside does what the server that works on the data asks for.
func (s *Server) answerBeside(ctx context.Context, c *server.Conn, k *caller, body bson.Doc) (bson.Doc, error) {
	d := s.sharing.reads.holder.TryEnter()
	if d == nil {
		return nil, errNotHere
	}
	defer d.Leave()
	if err := s.admitBeside(ctx, c, k); err != nil {
		return nil, err
	}
	what := body.Lookup(besideName)
	if what.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "the command %s is for servers among themselves", besideName)
	}
	if command.NeedsLatest(what.Doc()) {
		if err := d.told.rounds.join(ctx); err != nil {
			return nil, err
		}
	}
	said, err := d.commands.AnswerBeside(ctx, what.Doc())
	if err != nil {
		return nil, err
	}
	return bson.Build().Fields(said).Double("ok", 1).Doc(), nil
}

// admitBeside refuses who is not the server that works on the data, where servers can show that they are such. It shows that by logging in, which is handed
// on, so it says itself who it is.
func (s *Server) admitBeside(ctx context.Context, c *server.Conn, k *caller) error {
	if !s.opts.Authorization && !s.transport.clusterAuth.IsAsked() {
		return nil
	}
	if k.known {
		if name, err := s.sharing.reads.whoIs(ctx, c, k); err == nil && name.IsInternal() {
			return nil
		}
	}
	return mongoerr.New(mongoerr.Unauthorized, "this command is for servers among themselves")
}
