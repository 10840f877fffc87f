package ebb

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/internal/kv/hangdisk"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/standin"
)

// hanging is a set whose members' disks can hang.
func hanging(t *testing.T) (s *three, disks [3]*hangdisk.Disk, logs *[3]lockedLog) {
	logs = &[3]lockedLog{}
	for i := range disks {
		disks[i] = hangdisk.New()
	}
	s = startThree(t, func(i int, o *Options) {
		o.Engine, o.DBPath, o.MinFreeBytes, o.ReserveBytes, o.CacheBytes = Pebble, t.TempDir(), -1, -1, 16<<20
		o.Machine, o.Log = &standin.Machine{Disk: disks[i]}, serverlog.New(&logs[i], 0).Logger()
	})
	t.Cleanup(func() { // before the set ends, or it would wait for them
		for _, d := range disks {
			d.GoOn()
		}
	})
	return s, disks, logs
}

// TestHangingSecondary: a secondary from whose disk nothing comes back says so in its log, in serverStatus and, as the others do, in replSetGetStatus,
// until it goes on.
func TestHangingSecondary(t *testing.T) {
	t.Parallel() // it mostly waits
	s, disks, logs := hanging(t)
	primary := s.primary()
	hung := (primary + 1) % 3
	disks[hung].Hang("")
	coll := s.client.Database("d").Collection("c")
	if _, err := coll.InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	says := func(at int, hangs bool) error {
		var r struct {
			Members []struct{ InfoMessage, StateStr string }
		}
		if err := s.direct(at).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r); err != nil {
			return err
		}
		if m := r.Members[hung]; m.StateStr != "SECONDARY" || strings.HasPrefix(m.InfoMessage, "the disk hangs") != hangs {
			return fmt.Errorf("member %d says %+v", at, m)
		}
		return nil
	}
	var status struct {
		Pebble struct{ StalledMillis, Stalls int64 }
	}
	look := func() {
		t.Helper()
		if err := s.direct(hung).Database("admin").RunCommand(t.Context(), bson.M{"serverStatus": 1}).Decode(&status); err != nil {
			t.Fatal(err)
		}
	}
	s.until("the member says that it hangs", func() error { return says(hung, true) })
	s.until("the primary says so", func() error { return says(primary, true) })
	if look(); status.Pebble.StalledMillis < 5000 {
		t.Errorf("serverStatus: %+v", status)
	}
	s.until("the log says so", func() error {
		if text := logs[hung].String(); !strings.Contains(text, "The disk hangs") {
			return errors.New(text)
		}
		return nil
	})
	disks[hung].GoOn()
	s.until("it has what it lacked", func() error {
		n, err := s.direct(hung).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
		if err == nil && n != 1 {
			err = fmt.Errorf("it has %d", n)
		}
		return err
	})
	s.until("nobody says so any more", func() error { return errors.Join(says(hung, false), says(primary, false)) })
	s.until("the log says that it is over", func() error {
		if text := logs[hung].String(); strings.Count(text, "The disk hangs") != 1 || strings.Count(text, "The disk does not hang any more") != 1 {
			return errors.New(text)
		}
		return nil
	})
	if look(); status.Pebble.Stalls != 1 {
		t.Errorf("serverStatus: %+v", status)
	}
}

// TestHangingStoreOfPrimary: a primary from whose store nothing comes back, though its log does, gives way to another one.
func TestHangingStoreOfPrimary(t *testing.T) {
	t.Parallel() // it mostly waits
	s, disks, _ := hanging(t)
	hung := s.primary()
	disks[hung].Hang(storeDir)
	client, noted := s.direct(hung), make(chan error, 1) // which waits where the store is being synced
	go func() {
		noted <- s.command(client, bson.D{{Key: "appendOplogNote", Value: 1}, {Key: "data", Value: bson.M{}}})
	}()
	s.until("another one is the primary", func() error {
		for i, server := range s.servers {
			if i != hung && server.group.Status().Leads {
				return nil
			}
		}
		return errors.New("nobody is")
	})
	disks[hung].GoOn()
	if err := <-noted; err != nil {
		switch mongoerr.Code(code(err)) {
		case mongoerr.NotWritablePrimary, mongoerr.InterruptedDueToReplStateChange, mongoerr.PrimarySteppedDown: // it knows by now
		default:
			t.Error("the note:", err)
		}
	}
	s.until("it follows", func() error {
		var r struct{ Secondary bool }
		err := s.direct(hung).Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&r)
		if err == nil && !r.Secondary {
			err = errors.New("it does not")
		}
		return err
	})
}
