package ebb_test

import (
	"bytes"
	"context"
	"crypto/fips140"
	"crypto/tls"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/certificate/certtest"
	"github.com/ebbdb/ebb/internal/serverlog"
)

// secured is a server over TLS, and what its clients need.
type secured struct {
	*certtest.Maker
	ca, server, ann *certtest.Identity
	tls             *ebb.TLS
	log             bytes.Buffer
}

func newSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{Maker: certtest.New(t, time.Now())}
	s.ca = s.Authority("the authority")
	s.server, s.ann = s.Issue(s.ca, "server", certtest.Local), s.Issue(s.ca, "ann")
	s.tls = &ebb.TLS{Mode: ebb.RequireTLS, CertificateKeyFile: s.Write("server.pem", s.server.PEM()), CAFile: s.Write("ca.pem", s.ca.CertPEM())}
	return s
}

func (s *secured) options() ebb.Options {
	return ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory, TLS: s.tls, Log: serverlog.New(&s.log, 0).Logger(), ScriptsInProcess: true}
}

// serve serves until the test ends.
func serve(t *testing.T, o ebb.Options) *ebb.Server {
	t.Helper()
	server, err := ebb.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// connect connects by uri, over TLS where config is given.
func connectTo(t *testing.T, uri string, config *tls.Config) *mongo.Client {
	t.Helper()
	o := options.Client().ApplyURI(uri).SetTimeout(20 * time.Second)
	if config != nil {
		o.SetTLSConfig(config)
	}
	client, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the server may be gone, whom the driver tells of sessions that end
		defer cancel()
		_ = client.Disconnect(ctx)
	})
	return client
}

func (s *secured) clientTLS(own *certtest.Identity) *tls.Config {
	return &tls.Config{RootCAs: certtest.Pool(s.ca), Certificates: []tls.Certificate{own.TLS()}}
}

func run(t *testing.T, c *mongo.Client, command bson.D) bson.Raw {
	t.Helper()
	got, err := c.Database("admin").RunCommand(t.Context(), command).Raw()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return got
}

// TestServerOverTLS: a driver works over TLS, serverStatus tells of it, and certificates and modes change while it does.
func TestServerOverTLS(t *testing.T) {
	s := newSecured(t)
	s.tls.Mode = ebb.AllowTLS
	server := serve(t, s.options())
	c := connectTo(t, "mongodb://"+server.Addr(), s.clientTLS(s.ann))
	if _, err := c.Database("d").Collection("c").InsertOne(t.Context(), bson.D{{Key: "x", Value: strings.Repeat("x", 100_000)}}); err != nil {
		t.Fatal(err)
	}
	var doc struct{ X string }
	if err := c.Database("d").Collection("c").FindOne(t.Context(), bson.D{}).Decode(&doc); err != nil || len(doc.X) != 100_000 {
		t.Fatal(len(doc.X), err)
	}
	status := run(t, c, bson.D{{Key: "serverStatus", Value: 1}})
	security := status.Lookup("security").Document()
	if got := security.Lookup("SSLServerSubjectName").StringValue(); got != "CN=server,OU=clients,O=Ebb" || !security.Lookup("SSLServerHasCertificateAuthority").Boolean() ||
		!security.Lookup("SSLServerCertificateExpirationDate").Time().Equal(s.server.Cert.NotAfter) {
		t.Error(security)
	}
	if got := status.Lookup("transportSecurity"); got.Document().Lookup("1.3").Int64() == 0 || got.Document().Lookup("1.2").Int64() != 0 {
		t.Error(got)
	}

	mode := func() string {
		return run(t, c, bson.D{{Key: "getParameter", Value: 1}, {Key: "tlsMode", Value: 1}}).Lookup("tlsMode").StringValue()
	}
	set := func(name string, value any) error {
		return c.Database("admin").RunCommand(t.Context(), bson.D{{Key: "setParameter", Value: 1}, {Key: name, Value: value}}).Err()
	}
	if err := set("tlsMode", "requireTLS"); err == nil || !strings.Contains(err.Error(), "Illegal state transition for tlsMode, attempt to change from allowTLS to requireTLS") {
		t.Error(err)
	}
	for _, bad := range []any{"requireSSL", 5} {
		if err := set("tlsMode", bad); err == nil || !strings.Contains(err.Error(), "Invalid tlsMode setting") {
			t.Error(err)
		}
	}
	if err := set("sslMode", "requireSSL"); err == nil || !strings.Contains(err.Error(), "Illegal state transition for sslMode, attempt to change from allowSSL to requireSSL") {
		t.Error(err)
	}
	for _, next := range []struct{ name, value, mode string }{{"sslMode", "preferSSL", "preferTLS"}, {"tlsMode", "requireTLS", "requireTLS"}} {
		plain := connectTo(t, "mongodb://"+server.Addr(), nil)
		run(t, plain, bson.D{{Key: "ping", Value: 1}})
		if err := set(next.name, next.value); err != nil || mode() != next.mode {
			t.Errorf("%s: %v, %s", next, err, mode())
		}
	}
	plain := connectTo(t, "mongodb://"+server.Addr()+"/?serverSelectionTimeoutMS=300", nil)
	if err := plain.Ping(t.Context(), nil); err == nil {
		t.Error("a plain client was let in where TLS is required")
	}
	for value, want := range map[any]string{"O=Ebb,OU=others": "", "": "", "CN=x": "must contain at least one of", 5: "must be a string"} {
		if err := set("tlsX509ClusterAuthDNOverride", value); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", value, err)
		}
	}

	s.Write("server.pem", []byte("half of a f"))
	err := c.Database("admin").RunCommand(t.Context(), bson.D{{Key: "rotateCertificates", Value: 1}}).Err()
	if e, ok := err.(mongo.CommandError); !ok || e.Name != "InvalidSSLConfiguration" {
		t.Error(err)
	}
	s.Write("server.pem", s.Issue(s.ca, "the next", certtest.Local).PEM())
	run(t, c, bson.D{{Key: "rotateCertificates", Value: 1}, {Key: "message", Value: "hello"}})
	if got := run(t, c, bson.D{{Key: "serverStatus", Value: 1}}).Lookup("security", "SSLServerSubjectName").StringValue(); got != "CN=the next,OU=clients,O=Ebb" {
		t.Error(got)
	}
	run(t, connectTo(t, "mongodb://"+server.Addr(), s.clientTLS(s.ann)), bson.D{{Key: "ping", Value: 1}})
}

// TestCertificateThatEndsSoon is told at the start.
func TestCertificateThatEndsSoon(t *testing.T) {
	s := newSecured(t)
	s.Now = s.Now.Add(-360 * 24 * time.Hour)
	s.Write("server.pem", s.Issue(s.ca, "server", certtest.Local).PEM())
	server, err := ebb.Open(s.options())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(s.log.String(), `"msg":"Server certificate will expire soon","c":"CONTROL","tags":["startupWarnings"]`) {
		t.Error(s.log.String())
	}
}

// TestMembersNames: a name that would be a member's is no user's, unless members' certificates are users' too.
func TestMembersNames(t *testing.T) {
	s := newSecured(t)
	member := s.Issue(s.ca, "another")
	o := s.options()
	for _, separate := range []bool{true, false} {
		o.Parameters = map[string]string{"enforceUserClusterSeparation": strconv.FormatBool(separate)}
		server := serve(t, o)
		c := connectTo(t, "mongodb://"+server.Addr(), s.clientTLS(member))
		for name, isMember := range map[string]bool{"CN=another,OU=clients,O=Ebb": true, "CN=bob,OU=others,O=Ebb": false} {
			err := c.Database("$external").RunCommand(t.Context(), bson.D{{Key: "createUser", Value: name}, {Key: "roles", Value: bson.A{}}}).Err()
			if (err != nil) != (isMember && separate) || err != nil && !strings.Contains(err.Error(), "recognized as an internal cluster member") {
				t.Errorf("%s, separate %v: %v", name, separate, err)
			}
		}
		err := c.Database("$external").RunCommand(t.Context(), bson.D{{Key: "authenticate", Value: 1}, {Key: "mechanism", Value: "MONGODB-X509"}}).Err()
		if (err != nil) != separate {
			t.Errorf("login, separate %v: %v", separate, err)
		}
	}
	o.ClusterX509 = true
	if server, err := ebb.Open(o); err == nil || !strings.Contains(err.Error(), "enforceUserClusterSeparation") {
		t.Error(err)
		if server != nil {
			server.Close()
		}
	}
}

// TestFIPSMode: who asks for validated cryptography gets it, or no server.
func TestFIPSMode(t *testing.T) {
	s := newSecured(t)
	s.tls.FIPSMode = true
	server, err := ebb.Open(s.options())
	if (err == nil) != fips140.Enabled() || err != nil && !strings.Contains(err.Error(), "FIPS 140-3") {
		t.Error(err)
	}
	if server != nil {
		server.Close()
	}
}

// TestServerOnASocket: a driver works by the Unix domain socket, and is told to be on this machine.
func TestServerOnASocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "ebb") // short, as the paths of sockets are
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "own.sock")
	serve(t, ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory, Addresses: []string{"127.0.0.1", path}, ScriptsInProcess: true})
	c := connectTo(t, "mongodb://"+strings.ReplaceAll(path, "/", "%2F"), nil)
	if you := run(t, c, bson.D{{Key: "whatsmyuri", Value: 1}}).Lookup("you").StringValue(); you != "anonymous unix socket:27017" {
		t.Error(you)
	}
	if err := c.Database("admin").RunCommand(t.Context(), bson.D{{Key: "shutdown", Value: 1}}).Err(); err != nil {
		t.Errorf("who is on this machine may shut the server down: %v", err)
	}
}
