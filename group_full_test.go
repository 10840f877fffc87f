package ebb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/internal/kv/smalldisk"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/standin"
)

// TestFullMember: a primary whose disk is nearly full has a member take over that can take writes, says so, and is not elected as long as it has no room. With no room
// at all it goes on serving reads, while the others go on; and it gets what it lacks when there is room.
func TestFullMember(t *testing.T) {
	const room = 512 << 20
	var disks [3]*smalldisk.Disk
	var logs [3]lockedLog
	s := startThree(t, func(i int, o *Options) {
		disks[i] = smalldisk.New(room)
		o.Engine, o.DBPath, o.MinFreeBytes, o.ReserveBytes, o.CacheBytes = Pebble, t.TempDir(), 4<<20, 2<<20, 16<<20
		o.Machine, o.Log = &standin.Machine{Disk: disks[i]}, serverlog.New(&logs[i], 0).Logger()
	})
	coll := s.client.Database("d").Collection("c")
	n := int64(0)
	insert := func() {
		t.Helper()
		s.until("a write", func() error { // which the primary refuses while its disk is full
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := coll.InsertOne(ctx, bson.M{"_id": n})
			if mongo.IsDuplicateKeyError(err) { // it was there, and nobody said so
				err = nil
			}
			return err
		})
		n++
	}
	insert()
	full := s.primary()
	s.until("another one is the primary", func() error {
		used, _ := disks[full].Used() // which gets less when a file of the log goes
		disks[full].Resize(used + 3<<20)
		if s.primary() == full {
			return errors.New("it is the same")
		}
		return nil
	})
	if text := logs[full].String(); !strings.Contains(text, "The disk of the primary is full: it has stepped down for another member") {
		t.Error("the log does not say why it has stepped down")
	}
	insert()
	has := func(member int, want int64) error {
		found, err := s.direct(member).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
		if err == nil && found != want {
			err = fmt.Errorf("member %d has %d documents of %d", member, found, want)
		}
		return err
	}
	s.until("the full member follows", func() error { return has(full, n) })

	disks[full].Resize(0)
	before := n
	s.until("its log waits for room", func() error {
		insert()
		if !s.servers[full].group.Full() {
			return errors.New("it does not")
		}
		return nil
	})
	insert()
	s.until("a full member is read", func() error {
		found, err := s.direct(full).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
		if err == nil && found < before {
			err = fmt.Errorf("it has %d", found)
		}
		return err
	})
	if p := s.primary(); p == full {
		t.Error("the full member is the primary")
	}
	disks[full].Resize(room)
	s.until("it has all again", func() error { return has(full, n) })
}
