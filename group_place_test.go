package ebb

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/standin"
)

// TestMemberInPlaceOfAnother: the directory of one member is not started in the place of another.
func TestMemberInPlaceOfAnother(t *testing.T) {
	s, all := startThreeStored(t)
	hosts := [3]string{}
	for i := range s.servers {
		hosts[i], all[i].Port = s.servers[i].Addr(), s.servers[i].network.Addr().(*net.TCPAddr).Port
	}
	s.close()
	copied := t.TempDir() + "/copied"
	if err := os.CopyFS(copied, os.DirFS(all[2].DBPath)); err != nil {
		t.Fatal(err)
	}
	o := all[1]
	o.DBPath = copied
	if server, err := Open(o); err == nil || !strings.Contains(err.Error(), hosts[2]) || !strings.Contains(err.Error(), "this server is the member "+hosts[1]) {
		t.Fatalf("%v, %v", server, err)
	}
	s.open(2, all[2])
}

// TestCopyOfMember: a copy of a member's directory is not started elsewhere while the member answers. Where it was not seen at the start the others hear the
// member that is where it should be.
func TestCopyOfMember(t *testing.T) {
	var all [3]Options
	var logs [3]lockedLog
	s := startThree(t, func(i int, o *Options) {
		o.Engine, o.DBPath, o.MinFreeBytes, o.ReserveBytes = Pebble, t.TempDir(), -1, -1
		o.Log = serverlog.New(&logs[i], 0).Logger()
		all[i] = *o
	})
	i := (s.primary() + 1) % 3
	host := s.servers[i].Addr()
	all[i].Port = s.servers[i].network.Addr().(*net.TCPAddr).Port
	s.closeOne(i)
	copied := all[i]
	copied.DBPath, copied.Port = t.TempDir()+"/copied", AnyPort
	if err := os.CopyFS(copied.DBPath, os.DirFS(all[i].DBPath)); err != nil {
		t.Fatal(err)
	}
	s.open(i, all[i])
	if server, err := Open(copied); err == nil || !strings.Contains(err.Error(), "is that of the member "+host+" of the replica set, which answers there") {
		t.Fatalf("%v, %v", server, err)
	}
	s.closeOne(i)
	twin := &three{t: t}
	twin.open(0, copied)
	t.Cleanup(twin.close)
	s.until("the copy is heard", func() error {
		if _, err := twin.direct(0).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{}); err != nil {
			return err
		}
		return nil
	})
	s.open(i, all[i])
	s.written()
	s.until("the others tell of the copy", func() error {
		text := logs[s.primary()].String()
		if !strings.Contains(text, "Two servers speak as one member of the replica set") || !strings.Contains(text, twin.servers[0].Addr()) {
			return errors.New("the primary's log does not")
		}
		return nil
	})
	s.written()
}

// TestAnotherAnswers: a member tells of a server that answers at another one's address and is a third.
func TestAnotherAnswers(t *testing.T) {
	var wrong [2]atomic.Pointer[string] // the address that leads elsewhere, and where
	var log bytes.Buffer
	dial := func(ctx context.Context, host string) (net.Conn, error) {
		if from, to := wrong[0].Load(), wrong[1].Load(); to != nil && host == *from {
			host = *to
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", host)
	}
	s := startThree(t, func(i int, o *Options) {
		if i == 0 {
			o.Log, o.Machine = serverlog.New(&log, 0).Logger(), &standin.Machine{Dial: dial}
		}
	})
	second, third := s.servers[1].Addr(), s.servers[2].Addr()
	wrong[0].Store(&second)
	wrong[1].Store(&third)
	s.until("the first does not take the third for the second", func() error {
		var status struct{ Members []struct{ Health int } }
		if err := s.direct(0).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&status); err != nil {
			return err
		}
		if status.Members[1].Health != 0 || status.Members[2].Health != 1 {
			return errors.New("it does")
		}
		return nil
	})
	s.close()
	if n := strings.Count(log.String(), "At the address of a member another one answers"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}
