// Package ldaptest is a directory for tests: a server of LDAP that has some users and groups, and remembers what it was asked. It must not
// know who asks.
package ldaptest

import (
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"testing"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"
)

// Directory is such a server.
type Directory struct {
	net.Listener
	opts Options
	mu   struct {
		sync.Mutex // guards what it was asked
		asks       []string
	}
}

// Options are what a Directory has.
type Options struct {
	// Passwords are those of its users, by their names.
	Passwords map[string]string
	// Entries are the names that searches find, by their filters.
	Entries map[string][]string
	// TLS is the certificate that it shows; without one it speaks in the clear.
	TLS *tls.Certificate
	// Mute has it hear all and say nothing.
	Mute bool
}

// New starts one on this machine, which ends with the test.
func New(t testing.TB, o Options) *Directory {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if o.TLS != nil {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*o.TLS}, MinVersion: tls.VersionTLS12})
	}
	d := &Directory{Listener: l, opts: o}
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

func (d *Directory) serve(c net.Conn) {
	defer c.Close()
	for {
		p, err := ber.ReadPacket(c)
		if err != nil || len(p.Children) < 2 {
			return
		}
		if !d.opts.Mute && !d.answer(c, p.Children[0].Value, p.Children[1]) {
			return
		}
	}
}

func (d *Directory) answer(c net.Conn, id any, op *ber.Packet) bool {
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
		if known, there := d.opts.Passwords[dn]; password == "" || there && known == password { // as RFC 4513 has it: no password is nobody's
			code = ldap.LDAPResultSuccess
		}
		end(ldap.ApplicationBindResponse, code)
	case ldap.ApplicationSearchRequest:
		filter, _ := ldap.DecompileFilter(op.Children[6])
		d.note("search " + op.Children[0].Value.(string) + " " + filter)
		for _, dn := range d.opts.Entries[filter] {
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

func (d *Directory) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.asks = append(d.mu.asks, what)
}

// Asked is what it was asked, in order.
func (d *Directory) Asked() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.mu.asks, "; ")
}
