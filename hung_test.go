package ebb

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/hangdisk"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/standin"
)

// TestEndWhileDiskHangs: a server that is told to end while its disk hangs says so in its log and does not wait for the disk, whether or not a client waits for it.
func TestEndWhileDiskHangs(t *testing.T) {
	for name, writes := range map[string]bool{"nobody writes": false, "a client writes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log lockedLog
			disk := hangdisk.New()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s, err := Open(Options{Engine: Pebble, DBPath: t.TempDir(), MinFreeBytes: -1, ReserveBytes: -1, CacheBytes: 16 << 20, Machine: &standin.Machine{Disk: disk, Listener: listener},
				Log: serverlog.New(&log, 0).Logger()})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- s.Serve(ctx) }()
			client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.Addr() + "/?directConnection=true&serverSelectionTimeoutMS=1000"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
			coll := client.Database("d").Collection("c")
			if _, err := coll.InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
				t.Fatal(err)
			}
			disk.Hang("")
			t.Cleanup(disk.GoOn) // or the folder would not be removed
			if writes {
				go func() { _, _ = coll.InsertOne(t.Context(), bson.M{"_id": 2}) }()
				for s.watch.Stalled() == 0 {
					_ = clock.Wait(t.Context(), clock.Wall(), time.Millisecond)
				}
			}
			cancel()
			err = <-served
			if err == nil {
				err = s.Close()
			}
			if !errors.Is(err, ErrDiskHangs) {
				t.Error("it ends with", err)
			}
			if text := log.String(); !strings.Contains(text, "The disk hangs, and the server ends without it") {
				t.Error(text)
			}
		})
	}
}
