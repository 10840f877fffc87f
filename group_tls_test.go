package ebb

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/internal/certificate/certtest"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
)

// TestGoOverToTLS: a set goes over from plain connections and a key file to TLS and certificates, member by member, and each member gets every write meanwhile.
func TestGoOverToTLS(t *testing.T) {
	t.Parallel() // it mostly waits
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
	s, all := startWithKey(t, key)
	s.allGet("a write before")
	restart := func(what string, change func(*Options)) {
		t.Helper()
		for i := range all {
			change(&all[i])
			s.openAgain(i, all[i])
			if o := &all[i]; o.TLS != nil && o.TLS.Mode == RequireTLS {
				c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.servers[i].Addr() + "/?directConnection=true&readPreference=secondaryPreferred&serverSelectionTimeoutMS=300").
					SetTLSConfig(&tls.Config{RootCAs: certtest.Pool(authority), Certificates: []tls.Certificate{maker.Issue(authority, "client").TLS()}}))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
				s.directs[i] = c
			}
			s.allGet(fmt.Sprintf("a write with %s at member %d", what, i))
		}
	}
	restart("allowTLS", func(o *Options) {
		o.TLS, o.ClusterX509, o.ClusterSendsKey = &TLS{Mode: AllowTLS, CertificateKeyFile: certificate, CAFile: ca}, !running, !running
	})
	set := func(parameter, value string) {
		t.Helper()
		for i := range all {
			s.until("setParameter "+parameter, func() error {
				err := s.command(s.direct(i), bson.D{{Key: "setParameter", Value: 1}, {Key: parameter, Value: value}})
				if err != nil && !strings.Contains(err.Error(), "checking out a connection") { // which takes longer than the client waits on a busy machine
					t.Fatal(err)
				}
				return err
			})
			s.allGet("a write with " + value)
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

// TestClusterAuthMode: a server begins with the mode that it was given, with a key file or without.
func TestClusterAuthMode(t *testing.T) {
	for _, c := range []struct {
		x509, sends, takes bool
		key                string
		want               command.ClusterAuthMode
	}{
		{false, false, false, "", command.ClusterAuthNone},
		{false, false, false, "key", command.ClusterAuthKeyFile},
		{true, true, false, "key", command.ClusterAuthSendKeyFile},
		{true, true, false, "", command.ClusterAuthSendKeyFile},
		{true, false, true, "key", command.ClusterAuthSendX509},
		{true, false, true, "", command.ClusterAuthSendX509},
		{true, false, false, "key", command.ClusterAuthSendX509},
		{true, false, false, "", command.ClusterAuthX509},
	} {
		o := &Options{ClusterX509: c.x509, ClusterSendsKey: c.sends, ClusterTakesKey: c.takes, KeyFile: c.key}
		if got := o.clusterAuth(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
