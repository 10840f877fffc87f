package e2e

import (
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
	"github.com/ebbdb/ebb/internal/certificate/certtest"
)

// tlsClients are those that are tried over TLS.
func tlsClients() []client {
	return []client{
		{name: "mongosh", needs: node(), dir: "node", argv: []string{mongosh, "--quiet", "--norc", "$URI", "--file", filepath.Join("mongosh", "tls.js")}},
		{name: "node", needs: node(), dir: "node", argv: []string{"node", "tls.mjs"}},
		python("pymongo", "tls.py"),
		java(javaClients, "driver", "ebb.Tls"),
	}
}

// TestTLS has clients come over TLS: to a server that wants a certificate of each, and to one that takes all, which has a Unix domain
// socket as well. They log in by their certificates, too, and one that is no user's does not.
func TestTLS(t *testing.T) {
	m := certtest.New(t, time.Now())
	ca := m.Authority("the authority")
	caFile, own := m.Write("ca.pem", ca.CertPEM()), m.Write("ann.pem", m.Issue(ca, "ann").PEM())
	const subject, byCertificate = "CN=ann,OU=clients,O=Ebb", "&authMechanism=MONGODB-X509"
	stranger := m.Write("stranger.pem", m.Issue(ca, "stranger").PEM())
	args := []string{"--storageEngine", "inMemory", "--tlsCertificateKeyFile", m.Write("server.pem", m.Issue(ca, "server", certtest.Local, certtest.Named(pkix.Name{CommonName: "server", Organization: []string{"Ebb"}})).PEM()), "--tlsCAFile", caFile}
	path := binary.Build(t)
	strict := binary.Start(t, path, append(args, "--tlsMode", "requireTLS")...)
	sockets, err := os.MkdirTemp("", "ebb") // short, as the paths of sockets are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	socket := filepath.Join(sockets, "ebb.sock")
	open := binary.Start(t, path, append(args, "--tlsMode", "preferTLS", "--tlsAllowConnectionsWithoutCertificates", "--bind_ip", "127.0.0.1,"+socket)...)

	const direct = "directConnection=true"
	bare := direct + "&tls=true&tlsCAFile=" + url.QueryEscape(caFile)
	with := bare + "&tlsCertificateKeyFile=" + url.QueryEscape(own)
	env := map[string]string{
		"EBB_BARE": strict.URI(bare), "EBB_PLAIN": strict.URI(direct), "EBB_OPEN": open.URI(bare), "EBB_SOCKET": "mongodb://" + url.QueryEscape(socket) + "/?" + direct,
		"EBB_CA": caFile, "EBB_PEM": own, "EBB_X509": strict.URI(with + byCertificate), "EBB_STRANGER": strict.URI(bare + "&tlsCertificateKeyFile=" + url.QueryEscape(stranger) + byCertificate),
		"EBB_STRANGER_PEM": stranger,
	}
	create := bson.D{{Key: "createUser", Value: subject}, {Key: "roles", Value: bson.A{}}}
	equal(t, connect(t, strict.URI(with)).Database("$external").RunCommand(t.Context(), create).Err(), nil)
	var pairs []string
	for name, value := range env {
		pairs = append(pairs, name+"="+value)
	}
	t.Run("all", func(t *testing.T) { // ends when its parallel parts have
		for _, c := range tlsClients() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.require(t)
				c.run(t, strict.URI(with), pairs...)
			})
		}
		t.Run("go", func(t *testing.T) {
			t.Parallel()
			for _, uri := range []string{strict.URI(with), env["EBB_OPEN"], open.URI(direct), env["EBB_SOCKET"], env["EBB_X509"]} {
				docs := connect(t, uri).Database("e2e_tls").Collection("go")
				must(t)(docs.InsertOne(t.Context(), bson.D{{Key: "pad", Value: strings.Repeat("x", 100_000)}}))
				var got struct{ Pad string }
				equal(t, docs.FindOne(t.Context(), bson.D{}).Decode(&got), nil)
				equal(t, len(got.Pad), 100_000)
			}
			for _, uri := range []string{env["EBB_BARE"], env["EBB_PLAIN"], env["EBB_STRANGER"]} {
				client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(500 * time.Millisecond))
				if err != nil {
					t.Fatal(err)
				}
				if err := client.Ping(t.Context(), nil); err == nil {
					t.Errorf("%s was let in", uri)
				}
				_ = client.Disconnect(t.Context())
			}
		})
	})
	for _, server := range []*binary.Server{strict, open} {
		if how := server.Crashed(); how != "" {
			t.Errorf("the server did not survive its clients: %s", how)
		}
		if t.Failed() {
			t.Logf("the server's log ends with:\n%s", server.Log())
		}
	}
	equal(t, open.Stop(), nil)
	if _, err := net.Dial("unix", socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}
