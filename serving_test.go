package ebb_test

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
)

// TestMessagesOfTheUnknown: who has not logged in sends no large messages, where clients log in, nor what becomes one when it is decompressed.
func TestMessagesOfTheUnknown(t *testing.T) {
	for _, authorization := range []bool{false, true} {
		s := serve(t, ebb.Options{Engine: ebb.InMemory, Port: ebb.AnyPort, Authorization: authorization, Compressors: []string{"zlib"}})
		run := func(user, more string, command bson.D) error {
			c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + user + s.Addr() + "/?directConnection=true" + more))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Disconnect(context.Background()) }()
			return c.Database("admin").RunCommand(t.Context(), command).Err()
		}
		ping := func(user, more string, bytes int) error {
			return run(user, more, bson.D{{Key: "ping", Value: 1}, {Key: "comment", Value: strings.Repeat("x", bytes)}})
		}
		if err := run("", "", bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: bson.A{"root"}}}); err != nil {
			t.Fatal(err)
		}
		for _, more := range []string{"", "&compressors=zlib"} {
			if err := ping("", more, 15_000); err != nil {
				t.Error(authorization, more, err)
			}
			if err := ping("", more, 17_000); (err == nil) == authorization || err != nil && !mongo.IsNetworkError(err) {
				t.Errorf("authorization %t, %q: a message of 17 KB of nobody: %v", authorization, more, err)
			}
			if err := ping("u:p@", more, 1<<20); err != nil {
				t.Error(authorization, more, err)
			}
		}
		if err := run("u:p@", "", bson.D{{Key: "setParameter", Value: 1}, {Key: "preAuthMaximumMessageSizeBytes", Value: 20_000}}); err != nil {
			t.Fatal(err)
		}
		if err := ping("", "", 17_000); err != nil {
			t.Error(err)
		}
	}
}

// TestEstablishmentIsLimited: where connections begin too fast the server refuses new ones and serves those that are there.
func TestEstablishmentIsLimited(t *testing.T) {
	s := serve(t, ebb.Options{Engine: ebb.InMemory, Port: ebb.AnyPort})
	one, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.Addr() + "/?directConnection=true").SetMaxPoolSize(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Disconnect(context.Background()) }()
	admin := one.Database("admin")
	set := func(name string, value any) error {
		return admin.RunCommand(t.Context(), bson.D{{Key: "setParameter", Value: 1}, {Key: "ingressConnectionEstablishment" + name, Value: value}}).Err()
	}
	comes := func() bool {
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err = c.Write(pinging(t)); err != nil {
			return false
		}
		n, _ := c.Read(make([]byte, 16))
		return n > 0
	}
	for _, bad := range []struct {
		name  string
		value any
		text  string
	}{
		{"RatePerSec", 0, "0 is not greater than or equal to 1"},
		{"BurstCapacitySecs", 0, "0 is not greater than 0"},
		{"MaxQueueDepth", -1, "-1 is not greater than or equal to 0"},
		{"RateLimiterBypass", "127.0.0.1", "is the wrong type 'string', expected type 'object'"},
		{"RateLimiterBypass", bson.D{{Key: "range", Value: bson.A{}}}, "RateLimiterBypass.range' is an unknown field."},
		{"RateLimiterBypass", bson.D{{Key: "ranges", Value: bson.A{1}}}, "RateLimiterBypass.ranges.0' is the wrong type 'int', expected type 'string'"},
	} {
		if err := set(bad.name, bad.value); err == nil || !strings.Contains(err.Error(), bad.text) {
			t.Errorf("%s %v: %v", bad.name, bad.value, err)
		}
	}
	for _, p := range []struct {
		name  string
		value any
		comes bool
	}{
		{"RatePerSec", 1, true}, {"BurstCapacitySecs", 0.001, true}, {"RateLimiterEnabled", true, false},
		{"RateLimiterBypass", bson.D{{Key: "ranges", Value: bson.A{"127.0.0.0/8"}}}, true},
		{"RateLimiterBypass", bson.D{{Key: "ranges", Value: bson.A{"10.0.0.0/8"}}}, false},
		{"RateLimiterEnabled", false, true},
	} {
		if err := set(p.name, p.value); err != nil {
			t.Fatal(p.name, err)
		}
		if comes() != p.comes {
			t.Errorf("after %s is %v a connection comes in: %t", p.name, p.value, !p.comes)
		}
	}
	var status struct {
		Connections struct {
			EstablishmentRateLimit struct{ Rejected, Exempted int }
		}
		Queues struct {
			IngressSessionEstablishment struct{ AttemptedAdmissions, SuccessfulAdmissions int }
		}
	}
	if err := admin.RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}}).Decode(&status); err != nil {
		t.Fatal(err)
	}
	if l, q := status.Connections.EstablishmentRateLimit, status.Queues.IngressSessionEstablishment; l.Rejected < 2 || l.Exempted < 1 || q.AttemptedAdmissions != l.Rejected || q.SuccessfulAdmissions != 0 {
		t.Errorf("%+v", status)
	}
}

// pinging is a whole message that asks for a reply.
func pinging(t *testing.T) []byte {
	body, err := bson.Marshal(bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
	if err != nil {
		t.Fatal(err)
	}
	const header, opMsg = 16 + 4 + 1, 2013
	m := binary.LittleEndian.AppendUint32(nil, uint32(header+len(body)))
	m = binary.LittleEndian.AppendUint32(m, 1)
	m = binary.LittleEndian.AppendUint32(m, 0)
	m = binary.LittleEndian.AppendUint32(m, opMsg)
	return append(append(m, 0, 0, 0, 0, 0), body...)
}
