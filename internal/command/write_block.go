package command

import (
	"context"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
)

// writeBlock refuses the writes of users, for as long as it is stored; reason is one of blockReasons.
type writeBlock struct{ reason string }

var blocksNS = namespace.NS{DB: "config", Coll: "user_writes_critical_sections"}

// blockReasons are why writes may be blocked; the first when nobody says.
var blockReasons = []string{"Unspecified", "ClusterToClusterMigrationInProgress", "DiskUseThresholdExceeded"}

// loadWriteBlock reads whether writes are blocked.
func (s *Server) loadWriteBlock(ctx context.Context) error {
	doc, err := s.Query.StoredSetting(ctx, blocksNS, bson.String(""))
	if err != nil || !doc.Lookup("blockUserWrites").Truthy() {
		return err
	}
	b := &writeBlock{blockReasons[0]}
	if v := doc.Lookup("blockUserWritesReason"); v.Type == bson.TypeString {
		b.reason = strings.Clone(v.Str())
	}
	s.writesBlocked.Store(b)
	return nil
}

func setUserWriteBlockMode(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	a.Required("global")
	block := a.Bool("global", false)
	reason, _ := a.enum("reason", blockReasons...)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if op.Replica == nil {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "setUserWriteBlockMode cannot be run on standalones")
	}
	if reason == "" {
		reason = blockReasons[0]
	}
	return bson.EmptyDoc, op.blockWrites(block, reason)
}

// blockWrites blocks the writes of users, or lets them in. When it returns no write is under way that began before.
func (op *Op) blockWrites(block bool, reason string) error {
	already := false
	err := op.alter(func(ctx context.Context, s *Server) error {
		before := s.writesBlocked.Load()
		switch {
		case before != nil && before.reason != reason && block:
			return mongoerr.New(mongoerr.IllegalOperation, "Cannot acquire user writes critical section with different reason than the already-set reason")
		case before != nil && before.reason != reason:
			return mongoerr.New(mongoerr.IllegalOperation, "Cannot release user writes critical section with different reason than the already-set reason")
		case block == (before != nil):
			already = true
			return nil
		}
		doc := bson.Build().String("_id", "").Bool("blockNewUserShardedDDL", false).Bool("blockUserWrites", block).String("blockUserWritesReason", reason).Doc()
		if err := s.Query.StoreSetting(ctx, blocksNS, doc, clock.Millis(s.Clock)); err != nil {
			return err
		}
		if !block {
			s.writesBlocked.Store(nil)
			s.Log.Info("Unblocking user writes", "reason", reason)
			return nil
		}
		s.writesBlocked.Store(&writeBlock{reason})
		s.Log.Info("Blocking user writes", "reason", reason)
		return nil
	})
	if err != nil || already || !block || op.leftCommit() != nil {
		return err
	}
	return op.settleWrites()
}

// settleWrites waits for the writes that are under way.
func (op *Op) settleWrites() error {
	_, err := op.Writes.Shut(op.Ctx)
	if err == nil {
		op.Writes.Open()
	}
	return err
}

// checkBlocked refuses a write to the database while writes are blocked. What is the server's own can be written.
func (s *Server) checkBlocked(db string) error {
	b := s.writesBlocked.Load()
	if b == nil || db == "admin" || db == "config" || db == "local" {
		return nil
	}
	return mongoerr.New(mongoerr.UserWritesBlocked, "User writes blocked, reason: %s", b.reason)
}

// checkCommandBlocked is checkBlocked of a command that writes, unless its statements are looked at one by one.
func (op *Op) checkCommandBlocked() error {
	switch op.Command.Name {
	case "insert", "update", "delete", "bulkWrite":
		return nil
	case "renameCollection":
		if _, v := op.Args.first(); v.Type == bson.TypeString {
			return op.checkBlocked(namespace.Split(v.Str()).DB)
		}
	}
	return op.checkBlocked(op.DB)
}

// refusedInserts is what an insert of so many documents says while writes are blocked.
func refusedInserts(err error, documents int, ordered bool) (refused []query.WriteError) {
	for i := range documents {
		refused = append(refused, query.WriteError{Index: i, Err: err})
		if ordered {
			break
		}
	}
	return refused
}
