package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	driver "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/backup"
	"github.com/ebbdb/ebb/internal/backup/repository"
	"github.com/ebbdb/ebb/internal/clock"
)

// The entries of an oplog are done again by applyOps, on a server that nobody else reaches, which has the backup for its data. Its clock stands at
// the time of each entry, so that the last modification of documents, and with it what expires by it, is as it was. It is no member of the
// set, so that nothing expires by itself, and no oplog is written. What the backup's oplog has does not lead up to the moment that is restored,
// and whoever reads it would miss what came in between without knowing; so it goes, and the set begins another.

const (
	// maxReplayed and maxReplayedBytes are how many operations go at once, and how many bytes.
	maxReplayed      = 1000
	maxReplayedBytes = 8 << 20
	// maxPartBytes bounds what is kept of transactions that go on in later entries.
	maxPartBytes = 1 << 30
	// replayTimeout is how long one call may take.
	replayTimeout = 10 * time.Minute
)

// replayClock is a server's time that stands at what is replayed. Its timers are the machine's.
type replayClock struct{ millis atomic.Int64 }

func (c *replayClock) Now() time.Time { return time.UnixMilli(c.millis.Load()) }

func (c *replayClock) Read() (wall time.Time, monotonic time.Duration) {
	return c.Now(), clock.Monotonic(clock.Wall())
}

// Recorded has what is done again count as modified at exactly the time of its entry (clock.Recorded).
func (c *replayClock) Recorded() {}

func (c *replayClock) NewTimer(d time.Duration) ebb.Timer { return clock.Wall().NewTimer(d) }

// replayer is a server on a backup.
type replayer struct {
	clock  *replayClock
	client *mongo.Client
	ops    []bson.Raw
	bytes  int
	wall   int64
	// parts are the operations of transactions whose last entry has not come, by session and number.
	parts      map[string][]bson.Raw
	partsBytes int
}

// replay does the oplog behind a backup again, up to a moment, in the data directory that holds it.
func replay(ctx context.Context, path string, r *repository.Repository, m *repository.Manifest, to repository.Timestamp) (done backup.Replayed, err error) {
	folder, err := os.MkdirTemp("", "ebb-restore") // which nobody else may enter
	if err != nil {
		return done, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	socket := filepath.Join(folder, "mongodb-0.sock")
	x := &replayer{clock: &replayClock{}, parts: map[string][]bson.Raw{}}
	x.clock.millis.Store(m.At.UnixMilli())
	server, err := ebb.Open(ebb.Options{Addresses: []string{socket}, DBPath: path, Quiet: true, Clock: x.clock})
	if err != nil {
		return done, err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving) }()
	done, err = x.run(ctx, socket, r, m, to)
	stop()
	return done, errors.Join(err, <-served, server.Close())
}

func (x *replayer) run(ctx context.Context, socket string, r *repository.Repository, m *repository.Manifest, to repository.Timestamp) (done backup.Replayed, err error) {
	x.client, err = mongo.Connect(driver.Client().ApplyURI("mongodb://" + url.PathEscape(socket) + "/?directConnection=true").SetAppName("ebb restore").
		SetWriteConcern(&writeconcern.WriteConcern{W: 1}).SetTimeout(replayTimeout))
	if err != nil {
		return done, err
	}
	defer func() { _ = x.client.Disconnect(context.WithoutCancel(ctx)) }()
	behind, err := x.last(ctx)
	if err != nil {
		return done, err
	}
	done, err = backup.Replay(ctx, r, m.ID, behind, to, timestampOf, func(e backup.Entry) error { return x.add(ctx, e) })
	if err == nil {
		err = x.flush(ctx)
	}
	if err == nil && done.Entries > 0 {
		err = x.client.Database("local").RunCommand(ctx, bson.D{{Key: "drop", Value: "oplog.rs"}}).Err()
	}
	return done, err
}

// last is the last entry that the backup has.
func (x *replayer) last(ctx context.Context) (repository.Timestamp, error) {
	raw, err := x.oplog().FindOne(ctx, bson.D{}, driver.FindOne().SetSort(bson.D{{Key: "$natural", Value: -1}})).Raw()
	if err != nil {
		return repository.Timestamp{}, fmt.Errorf("look for the last entry in the backup's oplog: %w", err)
	}
	return timestampOf(raw)
}

func (x *replayer) oplog() *mongo.Collection {
	return x.client.Database("local").Collection("oplog.rs")
}

// logEntry is what is read of an entry.
type logEntry struct {
	Op        string
	Wall      time.Time
	O         bson.Raw
	Lsid      bson.Raw
	TxnNumber int64 `bson:"txnNumber"`
}

// add does an entry again, sooner or later.
func (x *replayer) add(ctx context.Context, e backup.Entry) error {
	var entry logEntry
	if err := bson.Unmarshal(e.Doc, &entry); err != nil {
		return fmt.Errorf("entry %s: %w", e.At, err)
	}
	if wall := entry.Wall.UnixMilli(); wall != x.wall {
		if err := x.flush(ctx); err != nil {
			return err
		}
		x.wall = wall
	}
	doc := bson.Raw(append([]byte(nil), e.Doc...))
	x.bytes += len(doc)
	switch inner, err := entry.O.LookupErr("applyOps"); {
	case entry.Op == "n":
	case entry.Op != "c":
		x.ops = append(x.ops, doc)
	case err != nil: // a command, which is done by itself
		if err := x.flush(ctx); err != nil {
			return err
		}
		x.ops = append(x.ops, doc)
		return x.flush(ctx)
	default:
		if err := x.transaction(&entry, inner, doc); err != nil {
			return fmt.Errorf("entry %s: %w", e.At, err)
		}
	}
	if len(x.ops) >= maxReplayed || x.bytes >= maxReplayedBytes {
		return x.flush(ctx)
	}
	return nil
}

// transaction adds the operations of an entry that has several, once its transaction's last entry has come. They are done as what an
// oplog holds, which has timestamps.
func (x *replayer) transaction(entry *logEntry, inner bson.RawValue, doc bson.Raw) error {
	array, ok := inner.ArrayOK()
	if !ok {
		return errors.New("its applyOps is no array")
	}
	values, err := array.Values()
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%x %d", []byte(entry.Lsid), entry.TxnNumber)
	for _, v := range values {
		op, ok := v.DocumentOK()
		if !ok {
			return errors.New("one of its operations is no document")
		}
		var fields bson.D
		if err := bson.Unmarshal(op, &fields); err != nil {
			return err
		}
		stamped, err := bson.Marshal(append(fields, bson.E{Key: "ts", Value: doc.Lookup("ts")}))
		if err != nil {
			return err
		}
		x.parts[key] = append(x.parts[key], stamped)
	}
	if partial, ok := entry.O.Lookup("partialTxn").BooleanOK(); ok && partial {
		if x.partsBytes += len(doc); x.partsBytes > maxPartBytes {
			return fmt.Errorf("transactions that go on in later entries have more than %d bytes", maxPartBytes)
		}
		return nil
	}
	x.ops = append(x.ops, x.parts[key]...)
	delete(x.parts, key)
	if len(x.parts) == 0 {
		x.partsBytes = 0
	}
	return nil
}

// flush does what was added, as of its time.
func (x *replayer) flush(ctx context.Context) error {
	if len(x.ops) == 0 {
		x.bytes = 0
		return nil
	}
	x.clock.millis.Store(x.wall) // which may be a little before that of the entry before
	for rest := x.ops; len(rest) > 0; {
		n, bytes := 0, 0
		for n < min(len(rest), maxReplayed) && (n == 0 || bytes+len(rest[n]) <= maxReplayedBytes) {
			bytes += len(rest[n])
			n++
		}
		if err := x.client.Database("admin").RunCommand(ctx, bson.D{{Key: "applyOps", Value: rest[:n]}}).Err(); err != nil {
			return fmt.Errorf("do entries of the oplog again: %w", err)
		}
		rest = rest[n:]
	}
	x.ops, x.bytes = nil, 0
	return nil
}
