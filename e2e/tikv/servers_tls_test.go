package tikv

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/launch"
	"github.com/ebbdb/ebb/internal/certificate/certtest"
)

// TestServersTLS: two servers take nobody without TLS, and know each other by their certificates. Who has logged in at the one that hands on sees what is
// under way at the other, and ends it; who shows a certificate of his own is somebody at the one that works alone.
func TestServersTLS(t *testing.T) {
	c, ebb := open(t)
	m, dir := certtest.New(t, time.Now()), t.TempDir()
	ca := m.Authority("the servers'")
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		noError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	authority := file("ca.pem", ca.CertPEM())
	begin := func(name string) *launch.Server {
		t.Helper()
		own := file(name+".pem", m.Issue(ca, name, certtest.Local).PEM())
		s, err := launch.Start(t.Context(), exec.Command(ebb, "serve", "--storageEngine", "tikv", "--tikvPD", c.PD(), "--port", "0", "--nounixsocket", "--auth",
			"--tlsMode", "requireTLS", "--tlsCAFile", authority, "--tlsCertificateKeyFile", own, "--tlsAllowConnectionsWithoutCertificates", "--clusterAuthMode", "x509"))
		noError(t, err)
		t.Cleanup(func() {
			s.Kill()
			if t.Failed() {
				t.Logf("%s:\n%s", name, s.Log())
			}
		})
		return s
	}
	first, second := begin("server1"), begin("server2")
	ctx := t.Context()
	client := func(s *launch.Server, as *options.Credential, own ...tls.Certificate) *mongo.Client {
		t.Helper()
		o := options.Client().ApplyURI(s.URI("directConnection=true")).SetTLSConfig(&tls.Config{RootCAs: certtest.Pool(ca), Certificates: own})
		if as != nil {
			o.SetAuth(*as)
		}
		client, err := mongo.Connect(o)
		noError(t, err)
		disconnectAtEnd(t, client)
		return client
	}
	ann := &options.Credential{Username: "ann", Password: "secret", AuthSource: "admin"}
	noError(t, client(first, nil).Database("admin").RunCommand(ctx, bson.D{{Key: "createUser", Value: "ann"}, {Key: "pwd", Value: "secret"},
		{Key: "roles", Value: bson.A{"root"}}}).Err())
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := connect(t, second).Database("admin").RunCommand(short, bson.D{{Key: "ping", Value: 1}}).Err(); err == nil {
		t.Error("a client without TLS is answered")
	}
	near, far := client(first, ann), client(second, ann)
	_, err := far.Database("test").Collection("c").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	noError(t, err)

	ended := make(chan error, 1)
	go func() {
		ended <- near.Database("test").Collection("c").FindOne(ctx, bson.D{{Key: "$where", Value: "sleep(60000) || true"}}).Err()
	}()
	eventually(t, "what is under way is seen and ended through the server that hands on", func() error {
		cursor, err := far.Database("admin").Aggregate(ctx, bson.A{bson.D{{Key: "$currentOp", Value: bson.D{}}}, bson.D{{Key: "$match", Value: bson.D{{Key: "ns", Value: "test.c"}}}}})
		if err != nil {
			return err
		}
		var ops []struct{ Opid any }
		if err := cursor.All(ctx, &ops); err != nil {
			return err
		}
		if len(ops) == 0 {
			return mongo.ErrNoDocuments
		}
		return far.Database("admin").RunCommand(ctx, bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: ops[0].Opid}}).Err()
	})
	if err := <-ended; codeOf(err) != 11601 {
		t.Errorf("what was ended is told %v", err)
	}

	// A certificate is shown to the server that a client speaks with, and proves nothing to another.
	own := m.Issue(ca, "", certtest.Named(pkix.Name{CommonName: "bob", Organization: []string{"users"}})) // which no server's has
	subject := own.Cert.Subject.String()
	noError(t, near.Database("$external").RunCommand(ctx, bson.D{{Key: "createUser", Value: subject}, {Key: "roles", Value: bson.A{bson.D{{Key: "role", Value: "read"}, {Key: "db", Value: "test"}}}}}).Err())
	bob := &options.Credential{AuthMechanism: "MONGODB-X509"}
	noError(t, client(first, bob, own.TLS()).Database("test").Collection("c").FindOne(ctx, bson.D{}).Err())
	if err := client(second, bob, own.TLS()).Database("test").Collection("c").FindOne(ctx, bson.D{}).Err(); err == nil {
		t.Error("a certificate is handed on")
	}
}
