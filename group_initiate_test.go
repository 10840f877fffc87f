package ebb

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// door is a way to a server, at an address of its own, that lets no message through which has a word in it.
type door struct {
	net.Listener
	to       string
	shut     atomic.Pointer[string]
	rejected atomic.Int64
}

func openDoor(t *testing.T) *door {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &door{Listener: l}
}

func (d *door) serve() {
	for {
		in, err := d.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", d.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		go func() {
			defer out.Close()
			buf := make([]byte, 1<<16)
			for {
				n, err := in.Read(buf)
				if err != nil {
					return
				}
				if word := d.shut.Load(); word != nil && bytes.Contains(buf[:n], []byte(*word)) {
					d.rejected.Add(1)
					return
				}
				if _, err := out.Write(buf[:n]); err != nil {
					return
				}
			}
		}()
		go func() {
			defer in.Close()
			_, _ = io.Copy(in, out)
		}()
	}
}

// openThree has three servers, of no set yet, behind doors, and the configuration of their set.
func openThree(t *testing.T) (s *three, doors [3]*door, config bson.M) {
	s = &three{t: t}
	hosts := bson.A{}
	for i := range s.servers {
		d := openDoor(t)
		doors[i] = d
		s.open(i, Options{Port: AnyPort, Engine: InMemory, ReplicaSet: &ReplicaSet{Name: "rs", Advertise: d.Addr().String()}})
		d.to = s.servers[i].Addr()
		go d.serve()
		hosts = append(hosts, bson.M{"_id": i, "host": d.Addr().String()})
	}
	t.Cleanup(s.close)
	return s, doors, bson.M{"_id": "rs", "members": hosts}
}

// written fails unless a write is at all three members.
func (s *three) written() {
	s.t.Helper()
	s.until("a write is at all members", func() error {
		insert := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{}}}, {Key: "writeConcern", Value: bson.M{"w": 3, "wtimeout": 1000}}}
		var r struct{ WriteConcernError bson.M }
		err := s.direct(s.primary()).Database("d").RunCommand(s.t.Context(), insert).Decode(&r)
		if err == nil && r.WriteConcernError != nil {
			err = fmt.Errorf("%v", r.WriteConcernError)
		}
		return err
	})
}

// TestInitiateHalfWay: a set does not begin where one of its members cannot be one, and may then begin at any of them; one that has begun has those join
// that could not at once.
func TestInitiateHalfWay(t *testing.T) {
	s, doors, config := openThree(t)
	reserve, join := "reserve", "join"
	doors[2].shut.Store(&reserve)
	if err := s.command(s.direct(0), bson.M{"replSetInitiate": config}); err == nil || doors[2].rejected.Load() == 0 {
		t.Fatalf("one member has not answered (%d times): %v", doors[2].rejected.Load(), err)
	}
	for i := range s.servers {
		if err := s.command(s.direct(i), bson.M{"replSetGetStatus": 1}); code(err) != 94 {
			t.Errorf("server %d is of a set: %v", i, err)
		}
	}
	doors[2].rejected.Store(0)
	doors[2].shut.Store(&join)
	if err := s.command(s.direct(1), bson.M{"replSetInitiate": config}); err != nil {
		t.Fatal(err)
	}
	s.until("it was asked to join", func() error {
		if doors[2].rejected.Load() < 2 {
			return io.ErrNoProgress
		}
		return nil
	})
	if err := s.command(s.direct(2), bson.M{"replSetGetStatus": 1}); code(err) != 94 {
		t.Error("it has joined by nothing:", err)
	}
	doors[2].shut.Store(nil)
	s.written()
}

// TestInitiateAtOnce: of three servers that begin the same set at one moment one at most does, and the others are its members.
func TestInitiateAtOnce(t *testing.T) {
	s, _, config := openThree(t)
	answers := make(chan error, len(s.servers))
	for i := range s.servers {
		c := s.direct(i)
		go func() { answers <- s.command(c, bson.M{"replSetInitiate": config}) }()
	}
	begun := 0
	for range s.servers {
		if err := <-answers; err == nil {
			begun++
		} else if c := code(err); c != 23 && c != 74 && c != 109 { // somebody else has begun, or is about to
			t.Error(err)
		}
	}
	if begun > 1 {
		t.Fatalf("%d sets have begun", begun)
	}
	if begun == 0 {
		if err := s.command(s.direct(0), bson.M{"replSetInitiate": config}); err != nil {
			t.Fatal("it cannot begin any more:", err)
		}
	}
	s.written()
}
