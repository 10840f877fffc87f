package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	driver "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/ebbdb/ebb/internal/backup"
	"github.com/ebbdb/ebb/internal/backup/repository"
	"github.com/ebbdb/ebb/internal/clock"
)

const (
	// tailWait is how long the server waits for entries before it says that there are none.
	tailWait = time.Second
	// tailTimeout is how long a server may take to answer.
	tailTimeout = time.Minute
	// clockSlack is how far behind the server's clock it is said that there are no entries.
	clockSlack = 2
)

// follow ships the oplog of a server until it is interrupted.
func follow(ctx context.Context, w, progress io.Writer, s *remote, r *repository.Repository) error {
	trouble := false
	return backup.Follow(ctx, s, r, clock.Wall(), told(progress, "shipped"), func(f backup.Following) {
		switch {
		case f.Trouble != nil:
			trouble = true
			fmt.Fprintf(progress, "nothing is shipped: %v; trying again in %v\n", f.Trouble, f.Retry)
		case trouble:
			trouble = false
			fmt.Fprintf(progress, "going on behind %s\n", f.Last)
		case f.Segments > 0:
			fmt.Fprintf(progress, "%d entries of the oplog shipped in %d segments, up to %s\n", f.Entries, f.Segments, f.Last)
		case f.Taken != nil:
			tellTaken(w, r, f.Taken)
			fallthrough
		default:
			fmt.Fprintf(w, "%s: following the oplog behind backup %s, from %s on\n", r, f.Backup, f.Last)
		}
	})
}

// tail reads local.oplog.rs.
type tail struct {
	remote *remote
	cursor *mongo.Cursor
	last   repository.Timestamp
}

// Tail is backup.Followed's.
func (r *remote) Tail(ctx context.Context, behind repository.Timestamp) (entry []byte, t backup.Tail, err error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), tailTimeout)
	defer cancel()
	from := bson.Timestamp{T: behind.Seconds, I: behind.Counter}
	durable := driver.Database().SetReadConcern(readconcern.Majority()) // what a crash takes back is not shipped
	cursor, err := r.client.Database("local", durable).Collection("oplog.rs").Find(ctx, bson.D{{Key: "ts", Value: bson.D{{Key: "$gte", Value: from}}}},
		driver.Find().SetCursorType(driver.TailableAwait).SetMaxAwaitTime(tailWait))
	if err != nil {
		return nil, nil, err
	}
	x := &tail{remote: r, cursor: cursor, last: behind}
	if !cursor.TryNext(ctx) {
		err := cursor.Err()
		x.Close()
		return nil, nil, err
	}
	entry = append(entry, cursor.Current...)
	if at, err := timestampOf(entry); err != nil || at != behind {
		x.Close()
		return nil, nil, err
	}
	return entry, x, nil
}

var errNoTimestamp = errors.New("an entry of the oplog has no timestamp")

// timestampOf is an entry's place.
func timestampOf(entry []byte) (repository.Timestamp, error) {
	v, err := bson.Raw(entry).LookupErr("ts")
	if err != nil {
		return repository.Timestamp{}, errNoTimestamp
	}
	seconds, counter, ok := v.TimestampOK()
	if !ok {
		return repository.Timestamp{}, errNoTimestamp
	}
	return repository.Timestamp{Seconds: seconds, Counter: counter}, nil
}

// Next is backup.Tail's. Whether there is nothing is known by what the server says of its clock and of its last entry before it is asked.
func (t *tail) Next(ctx context.Context) (entries []backup.Entry, until repository.Timestamp, err error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), tailTimeout)
	defer cancel()
	var hello struct {
		LocalTime time.Time
		LastWrite struct {
			OpTime struct {
				Timestamp bson.Timestamp `bson:"ts"`
			}
		}
	}
	if err := t.remote.admin.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		return nil, until, err
	}
	if !t.cursor.TryNext(ctx) {
		switch err := t.cursor.Err(); {
		case err != nil:
			return nil, until, err
		case t.cursor.ID() == 0:
			return nil, until, errors.New("the server has ended the cursor on its oplog")
		case timestamp(hello.LastWrite.OpTime.Timestamp) == t.last:
			until = repository.Timestamp{Seconds: uint32(hello.LocalTime.Unix() - clockSlack), Counter: math.MaxUint32}
		}
		return nil, until, nil
	}
	for {
		doc := append([]byte(nil), t.cursor.Current...)
		if t.last, err = timestampOf(doc); err != nil {
			return nil, until, err
		}
		entries = append(entries, backup.Entry{At: t.last, Doc: doc})
		if t.cursor.RemainingBatchLength() == 0 {
			return entries, until, nil
		}
		if !t.cursor.Next(ctx) {
			return nil, until, t.cursor.Err()
		}
	}
}

// Close is backup.Tail's.
func (t *tail) Close() {
	ctx, cancel := clock.WithTimeout(context.Background(), clock.Wall(), endTimeout)
	defer cancel()
	_ = t.cursor.Close(ctx)
}
