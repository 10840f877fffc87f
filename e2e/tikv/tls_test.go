package tikv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/e2e/launch"
	"github.com/ebbdb/ebb/e2e/tikv/cluster"
	"github.com/ebbdb/ebb/internal/certificate/certtest"
)

// TestTLS: PD and the store speak TLS and want to see a certificate. A server that has one works, and one that has another or none does not.
func TestTLS(t *testing.T) {
	if !*asked {
		t.Skip("needs a TiKV cluster, which takes minutes to build: make tikv")
	}
	certificates := func(m *certtest.Maker, ca *certtest.Identity) string {
		dir := t.TempDir()
		own := m.Issue(ca, "node", certtest.Local)
		for name, content := range map[string][]byte{"ca.pem": ca.CertPEM(), "cert.pem": own.CertPEM(), "key.pem": own.PEM()} {
			noError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		}
		return dir
	}
	m := certtest.New(t, time.Now())
	good := certificates(m, m.Authority("the cluster's"))
	other := certificates(m, m.Authority("another"))
	c, ebb := openAs(t, cluster.Options{Stores: 1, Certificates: good})
	begin := func(args ...string) (*launch.Server, error) {
		return launch.Start(t.Context(), exec.Command(ebb, append([]string{"serve", "--storageEngine", "tikv", "--tikvPD", c.PD(), "--port", "0", "--nounixsocket"}, args...)...))
	}
	files := func(dir string) []string {
		return []string{"--tikvTLSCAFile", filepath.Join(dir, "ca.pem"), "--tikvTLSCertificateFile", filepath.Join(dir, "cert.pem"), "--tikvTLSKeyFile", filepath.Join(dir, "key.pem")}
	}
	s, err := begin(files(good)...)
	noError(t, err)
	t.Cleanup(s.Kill)
	docs := connect(t, s).Database("test").Collection("docs")
	_, err = docs.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	noError(t, err)
	noError(t, docs.FindOne(t.Context(), bson.D{{Key: "_id", Value: 1}}).Err())
	for name, args := range map[string][]string{"none": nil, "another authority's": files(other)} {
		if s, err := begin(args...); err == nil {
			s.Kill()
			t.Errorf("a server whose certificate is %s is let in", name)
		} else if !strings.Contains(err.Error(), "TiKV") {
			t.Errorf("a server whose certificate is %s: %v", name, err)
		}
	}
	noError(t, s.Stop())
}
