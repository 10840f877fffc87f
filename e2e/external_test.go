package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
	"github.com/ebbdb/ebb/internal/auth/ldap/ldaptest"
	"github.com/ebbdb/ebb/internal/auth/oidc/oidctest"
	"github.com/ebbdb/ebb/internal/certificate/certtest"
)

// tokenFile is the variable in which drivers look for the token of a workload, as a cluster's manager gives it to them.
const tokenFile = "AWS_WEB_IDENTITY_TOKEN_FILE"

// outside is a server over TLS whose users others know: a directory, and an issuer of tokens, both over TLS.
type outside struct {
	*binary.Server
	issuer *oidctest.Issuer
	// ca is the file of the authorities, boss the address of a stored user who may do everything.
	ca, boss string
}

// startOutside has the directory know ann, whose password is "sesame"; she is a writer, as all are whom the issuer calls developers.
func startOutside(t *testing.T, more ...string) *outside {
	t.Helper()
	m := certtest.New(t, time.Now())
	ca := m.Authority("the authority")
	own := m.Issue(ca, "ldap", certtest.Local).TLS()
	directory := ldaptest.New(t, ldaptest.Options{TLS: &own, Passwords: map[string]string{"uid=ann,dc=x": "sesame"},
		Entries: map[string][]string{"(member=uid=ann,dc=x)": {"cn=writers,dc=x"}}})
	issuer := oidctest.NewTLS(t)
	authorities := m.Write("authorities.pem", ca.CertPEM(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw}))
	providers, err := json.Marshal([]map[string]any{
		{"issuer": issuer.URL, "audience": "people", "authNamePrefix": "corp", "clientId": "e2e", "authorizationClaim": "groups"},
		{"issuer": issuer.URL, "audience": "programs", "authNamePrefix": "jobs", "supportsHumanFlows": false, "authorizationClaim": "groups"}})
	equal(t, err, nil)
	t.Setenv("SSL_CERT_FILE", authorities) // whom the server believes that asks directory and issuer
	server := binary.Start(t, binary.Build(t), append(more, "--storageEngine", "inMemory", "--auth",
		"--tlsMode", "requireTLS", "--tlsCertificateKeyFile", m.Write("server.pem", m.Issue(ca, "server", certtest.Local).PEM()),
		"--tlsCAFile", authorities, "--tlsAllowConnectionsWithoutCertificates",
		"--ldapServers", directory.Addr().String(), "--ldapUserToDNMapping", `[{"match": "(.+)", "substitution": "uid={0},dc=x"}]`, "--ldapAuthzQueryTemplate", "dc=x??sub?(member={USER})",
		"--setParameter", "authenticationMechanisms=SCRAM-SHA-256,PLAIN,MONGODB-OIDC", "--setParameter", "oidcIdentityProviders="+string(providers))...)
	o := &outside{Server: server, issuer: issuer, ca: authorities}
	nobody := connect(t, server.URI(o.options()))
	equal(t, nobody.Database("admin").RunCommand(t.Context(), bson.D{{Key: "createUser", Value: "both"}, {Key: "pwd", Value: "both"}, {Key: "roles", Value: bson.A{"root"}}}).Err(), nil)
	o.boss = o.as("both", "both", "", "admin")
	root := connect(t, o.boss)
	for _, role := range []string{"cn=writers,dc=x", "corp/developers", "jobs/developers"} {
		equal(t, root.Database("admin").RunCommand(t.Context(), bson.D{{Key: "createRole", Value: role}, {Key: "privileges", Value: bson.A{}},
			{Key: "roles", Value: bson.A{bson.D{{Key: "role", Value: "readWrite"}, {Key: "db", Value: "e2e_login"}}}}}).Err(), nil)
	}
	return o
}

func (o *outside) options() string {
	return "directConnection=true&tls=true&tlsCAFile=" + url.QueryEscape(o.ca)
}

func (o *outside) as(user, password, mechanism, source string) string {
	return loginURI(o.Server, user, password, mechanism, url.QueryEscape(source)) + "&tls=true&tlsCAFile=" + url.QueryEscape(o.ca)
}

// workload is the address of who logs in by a token in a file.
func (o *outside) workload() string {
	return o.URI(o.options() + "&authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:k8s")
}

// people is the address of who gets a token from the issuer first.
func (o *outside) people() string { return o.URI(o.options() + "&authMechanism=MONGODB-OIDC") }

func (o *outside) token(audience string, good time.Duration) string {
	return o.issuer.Token("one", map[string]any{"sub": "ann", "aud": audience, "exp": time.Now().Add(good).Unix(), "groups": []string{"developers"}})
}

// trustStore is the authorities as Java reads them.
func trustStore(t *testing.T, ca string) string {
	t.Helper()
	if _, err := exec.LookPath("keytool"); err != nil {
		return "" // as is Java, which is looked for by its client
	}
	store := filepath.Join(t.TempDir(), "authorities.p12")
	all, err := os.ReadFile(ca)
	equal(t, err, nil)
	for i, part := range strings.SplitAfter(string(all), "-----END CERTIFICATE-----\n") {
		if part == "" {
			continue
		}
		c := exec.CommandContext(t.Context(), "keytool", "-importcert", "-noprompt", "-alias", fmt.Sprint(i), "-keystore", store, "-storetype", "PKCS12", "-storepass", "changeit")
		c.Stdin = strings.NewReader(part)
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("keytool: %v\n%s", err, said)
		}
	}
	return store
}

// TestLoginOutside has clients log in over TLS as users whom a directory or an issuer of tokens knows: programs whose token is in a file, and
// people who are told where they get one.
func TestLoginOutside(t *testing.T) {
	o := startOutside(t)
	file := filepath.Join(t.TempDir(), "token")
	equal(t, os.WriteFile(file, []byte(o.token("programs", time.Hour)), 0o600), nil)
	t.Setenv(tokenFile, file)
	ann := o.as("ann", "sesame", "PLAIN", "$external")
	in := []string{o.boss, ann, o.workload()}
	out := []string{o.as("ann", "Sesame", "PLAIN", "$external")}
	env := []string{"EBB_IN=" + strings.Join(in, "\n"), "EBB_OUT=" + strings.Join(out, "\n"), "EBB_AS=" + o.as("NAME", "NAME", "SCRAM-SHA-256", "NAME"),
		"EBB_PEOPLE=" + o.people(), "EBB_TOKEN=" + o.token("people", time.Hour), "NODE_EXTRA_CA_CERTS=" + o.ca}
	if store := trustStore(t, o.ca); store != "" {
		env = append(env, "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore="+store+" -Djavax.net.ssl.trustStorePassword=changeit")
	}
	for _, c := range loginClients() {
		t.Run(c.name, func(t *testing.T) {
			c.require(t)
			c.run(t, o.boss, env...)
		})
	}
	t.Run("go", func(t *testing.T) { goOutside(t, o, in, out[0]) })
	t.Run("a token that ends", func(t *testing.T) { tokenEnds(t, o, file) })
	t.Run("mongosh by a device", func(t *testing.T) {
		c := client{needs: node(), dir: "node", argv: []string{mongosh, o.people(), "--quiet", "--norc", "--oidcFlows=device-auth", "--oidcTrustedEndpoint",
			"--file", filepath.Join("mongosh", "people.js")}}
		c.require(t)
		o.issuer.LetIn(o.token("people", time.Hour))
		c.run(t, o.people(), env...)
	})
	if how := o.Crashed(); how != "" {
		t.Errorf("the server did not survive its clients: %s", how)
	}
	if strings.Contains(strings.ToLower(o.Log()), "sesame") || strings.Contains(o.Log(), "eyJ") {
		t.Error("the log tells of a password or a token")
	}
	if t.Failed() {
		t.Logf("the server's log ends with:\n%s", o.Log())
	}
}

func goOutside(t *testing.T, o *outside, in []string, out string) {
	for _, uri := range in {
		must(t)(connect(t, uri).Database("e2e_login").Collection("go").InsertOne(t.Context(), bson.D{}))
	}
	refused, err := mongo.Connect(options.Client().ApplyURI(out))
	equal(t, err, nil)
	if err := refused.Ping(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "Authentication failed") {
		t.Error(err)
	}
	_ = refused.Disconnect(t.Context())
	people, err := mongo.Connect(options.Client().ApplyURI(o.URI(o.options())).SetAuth(options.Credential{AuthMechanism: "MONGODB-OIDC",
		OIDCHumanCallback: func(_ context.Context, args *options.OIDCArgs) (*options.OIDCCredential, error) {
			if p := args.IDPInfo; p == nil || p.Issuer != o.issuer.URL || p.ClientID != "e2e" {
				return nil, fmt.Errorf("the server says of the issuer: %+v", p)
			}
			return &options.OIDCCredential{AccessToken: o.token("people", time.Hour)}, nil
		}}))
	equal(t, err, nil)
	must(t)(people.Database("e2e_login").Collection("go").InsertOne(t.Context(), bson.D{}))
	equal(t, people.Disconnect(t.Context()), nil)
}

// tokenEnds has a driver work on behind the end of its token: it takes the next one by itself.
func tokenEnds(t *testing.T, o *outside, file string) {
	equal(t, os.WriteFile(file, []byte(o.token("programs", 3*time.Second)), 0o600), nil)
	docs := connect(t, o.workload()).Database("e2e_login").Collection("ends")
	must(t)(docs.InsertOne(t.Context(), bson.D{}))
	equal(t, os.WriteFile(file, []byte(o.token("programs", time.Hour)), 0o600), nil)
	eventually(t, "the token has ended", func() bool {
		must(t)(docs.InsertOne(t.Context(), bson.D{}))
		return strings.Contains(o.Log(), "token is not valid any more")
	})
	must(t)(docs.InsertOne(t.Context(), bson.D{}))
}
