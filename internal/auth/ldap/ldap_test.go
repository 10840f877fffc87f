package ldap

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"
)

// directory is a server of LDAP that has some users, one of them in groups, and remembers what it was asked.
type directory struct {
	net.Listener
	mute bool
	mu   struct {
		sync.Mutex // guards what it was asked
		asks       []string
	}
}

func newDirectory(t *testing.T, mute bool) *directory {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &directory{Listener: l, mute: mute}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { d.serve(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return d
}

// passwords are those of the users; entries are what searches find, by their filters.
func passwords() map[string]string {
	return map[string]string{"cn=ann,dc=x": "pw", `cn=a\,b,dc=x`: "pw", "cn=asker,dc=x": "secret"}
}

func entries() map[string][]string {
	return map[string][]string{
		"(uid=ann)":            {"cn=ann,dc=x"},
		"(uid=two)":            {"cn=ann,dc=x", "cn=two,dc=x"},
		"(member=cn=ann,dc=x)": {"cn=readers,dc=x", "cn=writers,dc=x"},
	}
}

func (d *directory) serve(c net.Conn) {
	defer c.Close()
	for {
		p, err := ber.ReadPacket(c)
		if err != nil || len(p.Children) < 2 {
			return
		}
		if !d.mute && !d.answer(c, p.Children[0].Value, p.Children[1]) {
			return
		}
	}
}

func (d *directory) answer(c net.Conn, id any, op *ber.Packet) bool {
	reply := func(tag ber.Tag, children ...*ber.Packet) {
		out := ber.NewSequence("")
		out.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, id, ""))
		body := ber.Encode(ber.ClassApplication, ber.TypeConstructed, tag, nil, "")
		for _, ch := range children {
			body.AppendChild(ch)
		}
		out.AppendChild(body)
		_, _ = c.Write(out.Bytes())
	}
	end := func(tag ber.Tag, code int) {
		reply(tag, ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagEnumerated, code, ""), text(""), text("the password was pw"))
	}
	switch op.Tag {
	case ldap.ApplicationBindRequest:
		dn, password := op.Children[1].Value.(string), op.Children[2].Data.String()
		d.note("bind " + dn)
		code := ldap.LDAPResultInvalidCredentials
		if password == "" || passwords()[dn] == password { // as RFC 4513 has it: no password is nobody's
			code = ldap.LDAPResultSuccess
		}
		end(ldap.ApplicationBindResponse, code)
	case ldap.ApplicationSearchRequest:
		filter, _ := ldap.DecompileFilter(op.Children[6])
		d.note("search " + op.Children[0].Value.(string) + " " + filter)
		for _, dn := range entries()[filter] {
			reply(ldap.ApplicationSearchResultEntry, text(dn), ber.NewSequence(""))
		}
		end(ldap.ApplicationSearchResultDone, ldap.LDAPResultSuccess)
	default:
		return false
	}
	return true
}

func text(s string) *ber.Packet {
	return ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, s, "")
}

func (d *directory) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.asks = append(d.mu.asks, what)
}

func (d *directory) asked() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.mu.asks, "; ")
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
			if got := server.asked(); got != c.asks {
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
	login := func(plain bool, timeout time.Duration, servers ...*directory) error {
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
	if err := login(false, 50*time.Millisecond, server); err == nil || server.asked() != "bind cn=ann,dc=x" {
		t.Errorf("a server without TLS: %v, asked %s", err, server.asked())
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
