package ldap

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/auth/ldap/ldaptest"
	"github.com/ebbdb/ebb/internal/certificate/certtest"
)

func newDirectory(t *testing.T, mute bool) *ldaptest.Directory {
	t.Helper()
	return ldaptest.New(t, options(mute))
}

// options have some users, one of them in groups.
func options(mute bool) ldaptest.Options {
	return ldaptest.Options{Mute: mute,
		Passwords: map[string]string{"cn=ann,dc=x": "pw", `cn=a\,b,dc=x`: "pw", "cn=asker,dc=x": "secret"},
		Entries: map[string][]string{
			"(uid=ann)":            {"cn=ann,dc=x"},
			"(uid=two)":            {"cn=ann,dc=x", "cn=two,dc=x"},
			"(member=cn=ann,dc=x)": {"cn=readers,dc=x", "cn=writers,dc=x"},
		}}
}

func TestLogin(t *testing.T) {
	const byName = `[{"match": "(.+)@x", "substitution": "cn={0},dc=x"}]`
	const byQuery = `[{"match": "(.+)", "ldapQuery": "dc=x??sub?(uid={0})"}]`
	const groups = "dc=x??sub?(member={USER})"
	for _, c := range []struct {
		name, mapping, template, asker, user, password string
		roles, asks                                    string
		err                                            error
	}{
		{name: "a name of the directory", user: "cn=ann,dc=x", password: "pw", asks: "bind cn=ann,dc=x"},
		{name: "wrong password", user: "cn=ann,dc=x", password: "PW", err: ErrPassword, asks: "bind cn=ann,dc=x"},
		{name: "no password", user: "cn=ann,dc=x", err: ErrPassword},
		{name: "no name", password: "pw", err: ErrPassword},
		{name: "substitution", mapping: byName, user: "ann@x", password: "pw", asks: "bind cn=ann,dc=x"},
		{name: "the whole name must match", mapping: byName, user: "ann@x,dc=y", password: "pw", err: ErrNoUser},
		{name: "a value stays one", mapping: byName, user: "a,b@x", password: "pw", asks: `bind cn=a\,b,dc=x`},
		{name: "query", mapping: byQuery, user: "ann", password: "pw", asks: "bind ; search dc=x (uid=ann); bind cn=ann,dc=x"},
		{name: "query of two", mapping: byQuery, user: "two", password: "pw", err: ErrNoUser, asks: "bind ; search dc=x (uid=two)"},
		{name: "query of none", mapping: byQuery, user: "*", password: "pw", err: ErrNoUser, asks: `bind ; search dc=x (uid=\2a)`},
		{name: "query with more in it", mapping: byQuery, user: "x)(uid=ann", password: "pw", err: ErrNoUser, asks: `bind ; search dc=x (uid=x\29\28uid=ann)`},
		{name: "roles", template: groups, user: "cn=ann,dc=x", password: "pw", roles: "cn=readers,dc=x cn=writers,dc=x", asks: "bind cn=ann,dc=x; search dc=x (member=cn=ann,dc=x)"},
		{name: "roles by somebody else", template: groups, asker: "cn=asker,dc=x", user: "cn=ann,dc=x", password: "pw", roles: "cn=readers,dc=x cn=writers,dc=x",
			asks: "bind cn=ann,dc=x; bind cn=asker,dc=x; search dc=x (member=cn=ann,dc=x)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := newDirectory(t, false)
			d, err := New(Options{Servers: []string{server.Addr().String()}, Plain: true, Timeout: time.Minute, Mapping: c.mapping, QueryTemplate: c.template,
				QueryUser: c.asker, QueryPassword: "secret"})
			if err != nil {
				t.Fatal(err)
			}
			roles, known, err := d.Login(t.Context(), c.user, c.password)
			if !errors.Is(err, c.err) {
				t.Errorf("error %v", err)
			}
			if strings.Join(roles, " ") != c.roles || known != (c.roles != "") {
				t.Errorf("roles %q, %v", roles, known)
			}
			if got := server.Asked(); got != c.asks {
				t.Errorf("asked %s", got)
			}
		})
	}
}

// TestErrorsSayNothing: what the directory says may hold what it was sent.
func TestErrorsSayNothing(t *testing.T) {
	server := newDirectory(t, false)
	d, err := New(Options{Servers: []string{server.Addr().String()}, Plain: true, Timeout: time.Minute, QueryTemplate: "dc=x", QueryUser: "cn=asker,dc=x", QueryPassword: "wrong"})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = d.Login(t.Context(), "cn=ann,dc=x", "pw")
	if err == nil || strings.Contains(err.Error(), "pw") || !strings.Contains(err.Error(), "result 49 (Invalid Credentials)") {
		t.Error(err)
	}
}

func TestUnreachable(t *testing.T) {
	gone, server, silent := newDirectory(t, false), newDirectory(t, false), newDirectory(t, true)
	_ = gone.Close()
	login := func(plain bool, timeout time.Duration, servers ...*ldaptest.Directory) error {
		t.Helper()
		o := Options{Plain: plain, Timeout: timeout}
		for _, s := range servers {
			o.Servers = append(o.Servers, s.Addr().String())
		}
		d, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = d.Login(t.Context(), "cn=ann,dc=x", "pw")
		return err
	}
	if err := login(true, time.Minute, gone, server); err != nil {
		t.Errorf("the second server: %v", err)
	}
	if err := login(true, time.Minute, gone); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("no server: %v", err)
	}
	if err := login(true, 50*time.Millisecond, silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that says nothing: %v", err)
	}
	if err := login(false, 50*time.Millisecond, server); err == nil || server.Asked() != "bind cn=ann,dc=x" {
		t.Errorf("a server without TLS: %v, asked %s", err, server.Asked())
	}
}

// TestTLS: a password goes to a directory alone whose certificate is good for its name and by an authority that is believed.
func TestTLS(t *testing.T) {
	m := certtest.New(t, time.Now())
	ca, other := m.Authority("the authority"), m.Authority("another")
	for _, c := range []struct {
		name    string
		by      *certtest.Identity
		changes []certtest.Change
		roots   *x509.CertPool
		want    string
	}{
		{"good", ca, []certtest.Change{certtest.Local}, certtest.Pool(ca), ""},
		{"of another authority", other, []certtest.Change{certtest.Local}, certtest.Pool(ca), "unknown authority"},
		{"of no authority of this machine", ca, []certtest.Change{certtest.Local}, nil, "unknown authority"},
		{"for another name", ca, nil, certtest.Pool(ca), "127.0.0.1"},
		{"expired", ca, []certtest.Change{certtest.Local, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }}, certtest.Pool(ca), "expired"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(false)
			certificate := m.Issue(c.by, "ldap", c.changes...).TLS()
			o.TLS = &certificate
			server := ldaptest.New(t, o)
			d, err := New(Options{Servers: []string{server.Addr().String()}, Timeout: time.Minute, Roots: c.roots})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = d.Login(t.Context(), "cn=ann,dc=x", "pw")
			if asked := server.Asked(); c.want == "" && (err != nil || asked != "bind cn=ann,dc=x") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || asked != "") {
				t.Errorf("%v, asked %q", err, asked)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for mapping, want := range map[string]string{
		`[]`:                                    "0 rules",
		`{}`:                                    "cannot unmarshal",
		`[{"match": "a"}]`:                      "needs match, and either",
		`[{"match": "(", "substitution": "a"}]`: "missing closing )",
		`[{"match": "a)|(b", "substitution": ""}]`:   "unexpected )",
		`[{"match": "(a)", "substitution": "{1}"}]`:  "no group {1}",
		`[{"match": "a", "ldapQuery": "dc=x??up"}]`:  "scope base, one or sub",
		`[{"match": "a", "ldapQuery": "x??sub?(a"}]`: "Filter Compile Error",
		`[{"match": "a", "other": "b"}]`:             "unknown field",
	} {
		if _, err := New(Options{Servers: []string{"a"}, Mapping: mapping}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", mapping, err)
		}
	}
	if _, err := New(Options{}); err == nil {
		t.Error("no servers")
	}
}
