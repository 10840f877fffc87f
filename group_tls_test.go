package ebb

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/internal/certificate/certtest"
	"github.com/ebbdb/ebb/internal/clock"
)

// TestGoOverToTLS: a set goes over from plain connections and a key file to TLS and certificates, member by member, and each member gets every write meanwhile.
func TestGoOverToTLS(t *testing.T) {
	t.Run("with restarts", func(t *testing.T) { goOverToTLS(t, false) })
	t.Run("while members run", func(t *testing.T) { goOverToTLS(t, true) })
}

// goOverToTLS changes how members show that they are such with restarts, or while they run.
func goOverToTLS(t *testing.T, running bool) {
	maker := certtest.New(t, clock.Wall().Now())
	authority := maker.Authority("authority")
	ca := maker.Write("ca.pem", authority.CertPEM())
	member := certtest.Named(pkix.Name{CommonName: "member", OrganizationalUnit: []string{"members"}, Organization: []string{"Ebb"}})
	certificate := maker.Write("member.pem", maker.Issue(authority, "member", certtest.Local, member).PEM())
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("c29tZXRoaW5nIHNlY3JldA=="), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &three{t: t}
	t.Cleanup(s.close)
	var all [3]Options
	hosts := bson.A{}
	for i := range all {
		all[i] = Options{Port: AnyPort, DBPath: t.TempDir(), MinFreeBytes: -1, ReserveBytes: -1, KeyFile: key, ReplicaSet: &ReplicaSet{Name: "rs"}}
		s.open(i, all[i])
		all[i].Port = s.servers[i].network.Addr().(*net.TCPAddr).Port
		hosts = append(hosts, bson.M{"_id": i, "host": s.servers[i].Addr()})
	}
	if err := s.command(s.direct(0), bson.M{"replSetInitiate": bson.M{"_id": "rs", "members": hosts}}); err != nil {
		t.Fatal(err)
	}
	written := 0
	write := func(when string) {
		t.Helper()
		written++
		s.until(when+" all get a write", func() error {
			var r struct{ WriteConcernError bson.M }
			err := s.direct(s.primary()).Database("d").RunCommand(t.Context(), bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.M{"q": bson.M{"_id": written}, "u": bson.M{"$inc": bson.M{"n": 1}}, "upsert": true}}},
				{Key: "writeConcern", Value: bson.M{"w": 3, "wtimeout": 5000}}}).Decode(&r)
			if err == nil && r.WriteConcernError != nil {
				err = fmt.Errorf("%v", r.WriteConcernError)
			}
			return err
		})
	}
	write("before")
	restart := func(what string, change func(*Options)) {
		t.Helper()
		for i := range all {
			s.closeOne(i)
			if s.directs[i] != nil {
				_ = s.directs[i].Disconnect(context.Background())
				s.directs[i] = nil
			}
			change(&all[i])
			s.open(i, all[i])
			if o := &all[i]; o.TLS != nil && o.TLS.Mode == RequireTLS {
				c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.servers[i].Addr() + "/?directConnection=true&readPreference=secondaryPreferred&serverSelectionTimeoutMS=300").
					SetTLSConfig(&tls.Config{RootCAs: certtest.Pool(authority), Certificates: []tls.Certificate{maker.Issue(authority, "client").TLS()}}))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
				s.directs[i] = c
			}
			write(fmt.Sprintf("%s at member %d", what, i))
		}
	}
	restart("allowTLS", func(o *Options) {
		o.TLS, o.ClusterX509, o.ClusterSendsKey = &TLS{Mode: AllowTLS, CertificateKeyFile: certificate, CAFile: ca}, !running, !running
	})
	set := func(parameter, value string) {
		t.Helper()
		for i := range all {
			if err := s.command(s.direct(i), bson.D{{Key: "setParameter", Value: 1}, {Key: parameter, Value: value}}); err != nil {
				t.Fatal(err)
			}
			write("with " + value)
		}
	}
	if running {
		if err := s.command(s.direct(0), bson.D{{Key: "setParameter", Value: 1}, {Key: "clusterAuthMode", Value: "sendKeyFile"}}); err == nil {
			t.Error("certificates are taken where members are called without TLS")
		}
	}
	set("tlsMode", PreferTLS)
	if running {
		set("clusterAuthMode", "sendKeyFile")
		set("clusterAuthMode", "sendX509")
		set("clusterAuthMode", "x509")
	}
	restart("requireTLS and certificates", func(o *Options) {
		o.TLS, o.ClusterX509, o.ClusterSendsKey = &TLS{Mode: RequireTLS, CertificateKeyFile: certificate, CAFile: ca}, true, false
		if running { // nobody shows a key any more
			o.KeyFile = ""
		}
	})
}
