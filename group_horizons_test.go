package ebb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/internal/certificate/certtest"
	"github.com/ebbdb/ebb/internal/clock"
)

// outside is a network in which the members of a set have other addresses than where they reach one another: one.ebb.test:1 and so on.
type outside struct{ inside map[string]string }

// DialContext implements options.ContextDialer. Addresses of the other network lead nowhere.
func (o outside) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	inside, ok := o.inside[address]
	if !ok {
		return nil, fmt.Errorf("%s is not known outside", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, inside)
}

// TestHorizons: clients of another network learn of the addresses that members have there, whoever is the primary, and those of the first one do not.
func TestHorizons(t *testing.T) {
	maker := certtest.New(t, clock.Wall().Now())
	authority := maker.Authority("authority")
	names := [...]string{"one.ebb.test", "two.ebb.test", "three.ebb.test"}
	server := maker.Issue(authority, "server", certtest.Local, func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, names[:]...) })
	files := &TLS{Mode: AllowTLS, CertificateKeyFile: maker.Write("server.pem", server.PEM()), CAFile: maker.Write("ca.pem", authority.CertPEM()),
		AllowConnectionsWithoutCertificates: true}
	s := startThree(t, func(_ int, o *Options) { o.TLS = files })
	network := outside{map[string]string{}}
	for i, name := range names {
		network.inside[fmt.Sprintf("%s:%d", name, i+1)] = s.servers[i].Addr()
	}
	version := int32(0)
	reconfigure := func(horizon func(i int) any) {
		t.Helper()
		s.until("the set takes the horizons", func() error {
			var r struct{ Config bson.M }
			admin := s.direct(s.primary()).Database("admin")
			if err := admin.RunCommand(t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r); err != nil {
				return err
			}
			version = r.Config["version"].(int32) + 1
			r.Config["version"] = version
			for i, m := range r.Config["members"].(bson.A) {
				d := m.(bson.D)
				d = slices.DeleteFunc(d, func(e bson.E) bool { return e.Key == "horizons" })
				if h := horizon(i); h != nil {
					d = append(d, bson.E{Key: "horizons", Value: h})
				}
				r.Config["members"].(bson.A)[i] = d
			}
			return admin.RunCommand(t.Context(), bson.M{"replSetReconfig": r.Config}).Err()
		})
		for i := range s.servers {
			s.until("all have heard of it", func() error {
				var r struct{ SetVersion int32 }
				err := s.direct(i).Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&r)
				if err == nil && r.SetVersion < version {
					err = fmt.Errorf("version %d", r.SetVersion)
				}
				return err
			})
		}
	}
	reconfigure(func(i int) any { return bson.M{"outside": fmt.Sprintf("%s:%d", names[i], i+1)} })
	c, err := mongo.Connect(options.Client().ApplyURI("mongodb://two.ebb.test:2/?replicaSet=rs&serverSelectionTimeoutMS=2000").
		SetTLSConfig(&tls.Config{RootCAs: certtest.Pool(authority)}).SetDialer(network))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	type hello struct {
		Hosts       []string
		Me, Primary string
	}
	for range 3 { // primaries, one after the other as it happens
		s.until("a client outside writes", func() error {
			_, err := c.Database("d").Collection("c").InsertOne(t.Context(), bson.M{})
			return err
		})
		var out, in hello
		if err := c.Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&out); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out.Hosts, []string{"one.ebb.test:1", "two.ebb.test:2", "three.ebb.test:3"}) || out.Me != out.Primary || !strings.Contains(out.Me, ".ebb.test:") {
			t.Errorf("outside: %+v", out)
		}
		if err := s.direct(0).Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&in); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(in.Hosts, []string{s.servers[0].Addr(), s.servers[1].Addr(), s.servers[2].Addr()}) || in.Me != s.servers[0].Addr() || strings.Contains(in.Primary, "test") {
			t.Errorf("inside: %+v", in)
		}
		_ = s.direct(s.primary()).Database("admin").RunCommand(t.Context(), bson.M{"replSetStepDown": 5}).Err()
	}
	reconfigure(func(int) any { return nil })
	s.until("members have one address each again", func() error {
		one, err := mongo.Connect(options.Client().ApplyURI("mongodb://one.ebb.test:1/?directConnection=true&serverSelectionTimeoutMS=3000").
			SetTLSConfig(&tls.Config{RootCAs: certtest.Pool(authority)}).SetDialer(network))
		if err != nil {
			return err
		}
		defer func() { _ = one.Disconnect(context.Background()) }()
		var out hello
		err = one.Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&out)
		if err == nil && out.Me != s.servers[0].Addr() {
			err = errors.New(out.Me)
		}
		return err
	})
}
