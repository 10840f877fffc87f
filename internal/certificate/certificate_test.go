package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/youmark/pkcs8"

	"github.com/ebbdb/ebb/internal/certificate/certtest"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/serverlog"
)

// begin is when the tests take place.
func begin() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// house is a folder with an authority's and a server's certificates.
type house struct {
	*certtest.Maker
	ca, server *certtest.Identity
	clock      *clock.Fake
	opts       Options
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{Maker: certtest.New(t, begin()), clock: clock.NewFake(begin())}
	h.ca = h.Authority("the authority")
	h.server = h.Issue(h.ca, "server", certtest.Local)
	h.opts = Options{KeyFile: h.Write("server.pem", h.server.PEM()), CAFile: h.Write("ca.pem", h.ca.CertPEM())}
	return h
}

func (h *house) open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(h.opts, h.clock, serverlog.Discard().For("NETWORK"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// said is what verify says of a client with these certificates, its own first, or "" and the peer.
func said(set *Set, chain ...*certtest.Identity) (string, *Peer) {
	var state tls.ConnectionState
	for _, i := range chain {
		state.PeerCertificates = append(state.PeerCertificates, i.Cert)
	}
	if err := set.verify(state); err != nil {
		return err.Error(), nil
	}
	p, err := set.Peer(state)
	if err != nil {
		return err.Error(), p
	}
	return "", p
}

// TestWhoIsCalled: what is said of a member that has been called.
func TestWhoIsCalled(t *testing.T) {
	h := newHouse(t)
	named := func(cn string, dns ...string) *certtest.Identity {
		return h.Issue(h.ca, cn, func(c *x509.Certificate) { c.DNSNames = dns })
	}
	gone := h.Issue(h.ca, "gone", certtest.Local)
	h.opts.CRLFile = h.Write("crl.pem", h.Revoke(h.ca, begin().Add(-time.Hour), begin().Add(time.Hour), gone))
	const refused, other = "SSL peer certificate validation failed: ", "The server certificate does not match the host name. Hostname: "
	for _, c := range []struct {
		what, host string
		who        *certtest.Identity
		want       string
		hosts, any string // what is said where hosts do not matter, and where nothing does
	}{
		{"a server", "localhost", h.server, "", "", ""},
		{"by its address", "127.0.0.1", h.server, "", "", ""},
		{"another host", "db1.example.com", h.server, other + "db1.example.com does not match SAN(s): localhost, 127.0.0.1, ::1", "", ""},
		{"a name that it has by its subject alone", "db1.example.com", named("db1.Example.com"), "", "", ""},
		{"a star", "db1.example.com", named("*.example.com"), "", "", ""},
		{"a star for two", "db1.eu.example.com", named("*.example.com"), other + "db1.eu.example.com does not match CN: *.example.com", "", ""},
		{"a star for none", "com", named("*.com"), other + "com does not match CN: *.com", "", ""},
		{"no name", "", named(""), other + " does not match CN: ", "", ""},
		{"a subject where there are other names", "db1", named("db1", "db2"), other + "db1 does not match SAN(s): db2", "", ""},
		{"another authority's", "localhost", h.Issue(nil, "x", certtest.Local), refused + "self-signed certificate", refused + "self-signed certificate", ""},
		{"expired", "localhost", h.Issue(h.ca, "x", certtest.Local, func(c *x509.Certificate) { c.NotAfter = begin().Add(-time.Second) }),
			refused + "certificate has expired", refused + "certificate has expired", ""},
		{"revoked", "localhost", gone, refused + "certificate revoked", refused + "certificate revoked", ""},
	} {
		for i, want := range []string{c.want, c.hosts, c.any} {
			h.opts.AllowInvalidHosts, h.opts.AllowInvalid = i == 1, i == 2
			got, config := "", h.open(t).Set().Outgoing(c.host, false)
			if err := config.VerifyConnection(tls.ConnectionState{PeerCertificates: []*x509.Certificate{c.who.Cert}}); err != nil {
				got = err.Error()
			}
			if got != want || len(config.Certificates) != 1 {
				t.Errorf("%s, %d: %q, want %q", c.what, i, got, want)
			}
		}
	}
	h.opts.AllowInvalidHosts, h.opts.AllowInvalid = true, false
	set := h.open(t).Set()
	if err := set.Outgoing("x", false).VerifyConnection(tls.ConnectionState{}); err == nil {
		t.Error("a member without a certificate is believed")
	}
	if len(set.Outgoing("x", true).Certificates) > 0 {
		t.Error("the certificate is shown")
	}
}

// TestWhoIsLetIn: what MongoDB says of certificates that are no good.
func TestWhoIsLetIn(t *testing.T) {
	h := newHouse(t)
	other := h.Authority("another authority")
	between := h.Issue(h.ca, "between", certtest.IsCA)
	purpose := func(u x509.ExtKeyUsage) certtest.Change {
		return func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{u} }
	}
	const refused = "SSL peer certificate validation failed: "
	set := h.open(t).Set()
	for _, c := range []struct {
		what  string
		chain []*certtest.Identity
		want  string
	}{
		{"a good one", []*certtest.Identity{h.Issue(h.ca, "ann")}, ""},
		{"by one between", []*certtest.Identity{h.Issue(between, "ann"), between}, ""},
		{"by one between that did not come", []*certtest.Identity{h.Issue(between, "ann")}, refused + "unable to get local issuer certificate"},
		{"none", nil, "no SSL certificate provided by peer; connection rejected"},
		{"another's", []*certtest.Identity{h.Issue(other, "ann")}, refused + "unable to get local issuer certificate"},
		{"another's, with its authority", []*certtest.Identity{h.Issue(other, "ann"), other}, refused + "unable to get local issuer certificate"},
		{"its own", []*certtest.Identity{h.Issue(nil, "ann")}, refused + "self-signed certificate"},
		{"expired", []*certtest.Identity{h.Issue(h.ca, "ann", func(c *x509.Certificate) { c.NotAfter = begin().Add(-time.Second) })}, refused + "certificate has expired"},
		{"early", []*certtest.Identity{h.Issue(h.ca, "ann", func(c *x509.Certificate) { c.NotBefore = begin().Add(time.Minute) })}, refused + "certificate is not yet valid"},
		{"a server's", []*certtest.Identity{h.Issue(h.ca, "ann", purpose(x509.ExtKeyUsageServerAuth))}, refused + "unsuitable certificate purpose"},
		{"a client's", []*certtest.Identity{h.Issue(h.ca, "ann", purpose(x509.ExtKeyUsageClientAuth))}, ""},
	} {
		if got, p := said(set, c.chain...); got != c.want || (p != nil) != (c.want == "") {
			t.Errorf("%s: %q, %+v; want %q", c.what, got, p, c.want)
		}
	}

	h.opts.AllowNone = true
	if got, p := said(h.open(t).Set()); got != "" || p != nil {
		t.Errorf("none, where none is allowed: %q, %+v", got, p)
	}
	h.opts.AllowInvalid = true
	set = h.open(t).Set()
	if err := set.verify(tls.ConnectionState{PeerCertificates: []*x509.Certificate{h.Issue(nil, "ann").Cert}}); err != nil {
		t.Errorf("an invalid one, where that is allowed: %v", err)
	}
	if got, p := said(set, h.Issue(nil, "ann")); got != refused+"self-signed certificate" || p != nil {
		t.Errorf("an invalid one says who it is: %q, %+v", got, p)
	}
	if got, p := said(set, h.Issue(h.ca, "ann")); got != "" || p == nil {
		t.Errorf("a good one where others are allowed: %q, %+v", got, p)
	}

	h.opts = Options{KeyFile: h.opts.KeyFile, CAFile: h.opts.CAFile, ClusterCAFile: h.Write("cluster.pem", other.CertPEM())}
	set = h.open(t).Set()
	if got, _ := said(set, h.Issue(other, "ann")); got != "" {
		t.Errorf("clusterCAFile's: %q", got)
	}
	if got, _ := said(set, h.Issue(h.ca, "ann")); !strings.Contains(got, "issuer") {
		t.Errorf("CAFile's, where clients are held against clusterCAFile: %q", got)
	}
}

func TestRevocation(t *testing.T) {
	h := newHouse(t)
	ann, bob := h.Issue(h.ca, "ann"), h.Issue(h.ca, "bobby")
	from, until := begin().Add(-time.Hour), begin().Add(time.Hour)
	other := h.Authority("the authority") // of the same name
	between := h.Issue(h.ca, "between", certtest.IsCA)
	const refused = "SSL peer certificate validation failed: "
	for _, c := range []struct {
		what, ann, bob string
		lists          []byte
	}{
		{"one", refused + "certificate revoked", "", h.Revoke(h.ca, from, until, ann)},
		{"none", "", "", h.Revoke(h.ca, from, until)},
		{"an old list", refused + "CRL has expired", refused + "CRL has expired", h.Revoke(h.ca, from, begin().Add(-time.Minute))},
		{"a list to come", refused + "CRL is not yet valid", refused + "CRL is not yet valid", h.Revoke(h.ca, begin().Add(time.Minute), until)},
		{"another's of the same name", refused + "CRL signature failure", refused + "CRL signature failure", h.Revoke(other, from, until, ann)},
		{"that of one between", refused + "unable to get certificate CRL", refused + "unable to get certificate CRL", h.Revoke(between, from, until)},
		{"an old one that has it, and a new one", refused + "certificate revoked", "",
			append(h.Revoke(h.ca, from, from.Add(time.Minute), ann), h.Revoke(h.ca, from, until)...)},
	} {
		h.opts.CRLFile = h.Write("crl.pem", c.lists)
		set := h.open(t).Set()
		if got, _ := said(set, ann); got != c.ann {
			t.Errorf("%s: %q of Ann, want %q", c.what, got, c.ann)
		}
		if got, _ := said(set, bob); got != c.bob {
			t.Errorf("%s: %q of Bob, want %q", c.what, got, c.bob)
		}
	}
	under := h.Issue(between, "ann")
	h.opts.CRLFile = h.Write("crl.pem", h.Revoke(h.ca, from, until), h.Revoke(between, from, until, under))
	if got, _ := said(h.open(t).Set(), under, between); got != refused+"certificate revoked" {
		t.Errorf("by one between: %q", got)
	}
}

// TestKeysInAllForms: keys as OpenSSL writes them.
func TestKeysInAllForms(t *testing.T) {
	h := newHouse(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaServer := h.IssueFor(rsaKey, h.ca, "server")
	ec, err := x509.MarshalECPrivateKey(h.server.Key.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := pkcs8.MarshalPrivateKey(h.server.Key, []byte("open sesame"), nil)
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 it is what is tested
	legacy, err := x509.EncryptPEMBlock(rand.Reader, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), []byte("open sesame"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	old := pem.EncodeToMemory(legacy)
	for _, c := range []struct {
		what, password, want string
		file                 []byte
	}{
		{"PKCS#8", "", "", h.server.PEM()},
		{"PKCS#8, with a password that nobody needs", "x", "", h.server.PEM()},
		{"PKCS#1", "", "", append(certtest.Block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)), rsaServer.CertPEM()...)},
		{"SEC 1", "", "", append(certtest.Block("EC PRIVATE KEY", ec), h.server.CertPEM()...)},
		{"encrypted PKCS#8", "open sesame", "", append(certtest.Block("ENCRYPTED PRIVATE KEY", sealed), h.server.CertPEM()...)},
		{"encrypted PKCS#8 with another password", "close", "another one", append(certtest.Block("ENCRYPTED PRIVATE KEY", sealed), h.server.CertPEM()...)},
		{"encrypted PKCS#8 without a password", "", "no password", append(certtest.Block("ENCRYPTED PRIVATE KEY", sealed), h.server.CertPEM()...)},
		{"encrypted PEM", "open sesame", "", append(old, rsaServer.CertPEM()...)},
		{"encrypted PEM with another password", "close", "another one", append(old, rsaServer.CertPEM()...)},
		{"encrypted PEM without a password", "", "no password", append(old, rsaServer.CertPEM()...)},
		{"a certificate alone", "", "cannot read PEM key file: FILE: there is no private key in it", h.server.CertPEM()},
		{"a key alone", "", "cannot read certificate file: FILE: there is no certificate in it", certtest.Block("EC PRIVATE KEY", ec)},
		{"another's key", "", "the private key is not that of the certificate", append(certtest.Block("EC PRIVATE KEY", ec), rsaServer.CertPEM()...)},
		{"garbage", "", "there is no certificate", []byte("garbage")},
		{"a block of garbage", "", "cannot read certificate file", append(certtest.Block("CERTIFICATE", []byte("garbage")), certtest.Block("EC PRIVATE KEY", ec)...)},
		{"a key of garbage", "", "cannot read PEM key file", append(h.server.CertPEM(), certtest.Block("PRIVATE KEY", []byte("garbage"))...)},
	} {
		name := h.Write("key.pem", c.file)
		_, err := readKeyFile(name, c.password)
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), name, "FILE")
		}
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// TestWhatCannotBeUsed: each file that is missing or wrong has its words.
func TestWhatCannotBeUsed(t *testing.T) {
	h := newHouse(t)
	none, garbage := filepath.Join(h.Dir, "none"), h.Write("garbage", []byte("garbage"))
	for _, c := range []struct {
		what, want string
		set        func(*Options)
	}{
		{"no key file", "InvalidSSLConfiguration: Can not set up PEM key file. cannot read certificate file: " + none + ": no such file", func(o *Options) { o.KeyFile = none }},
		{"a folder", "is a directory", func(o *Options) { o.KeyFile = h.Dir }},
		{"no cluster file", "InvalidSSLConfiguration: Can not set up ssl clusterFile.", func(o *Options) { o.ClusterFile = none }},
		{"no CA file", "InvalidSSLConfiguration: cannot read certificate authority file: " + none, func(o *Options) { o.CAFile = none }},
		{"a CA file of garbage", "there is no certificate in it", func(o *Options) { o.CAFile = garbage }},
		{"no cluster CA file", "cannot read certificate authority file: " + none, func(o *Options) { o.ClusterCAFile = none }},
		{"no CA file beside a cluster CA file", "cannot read certificate authority file: " + none, func(o *Options) { o.CAFile, o.ClusterCAFile = none, o.CAFile }},
		{"no CRL file", "InvalidSSLConfiguration: Can not set up CRL file. cannot read CRL file: " + none, func(o *Options) { o.CRLFile = none }},
		{"a CRL file of garbage", "there is no list in it", func(o *Options) { o.CRLFile = garbage }},
		{"an expired certificate", "The provided SSL certificate is expired or not yet valid.", func(o *Options) {
			o.KeyFile = h.Write("expired", h.Issue(h.ca, "server", func(c *x509.Certificate) { c.NotAfter = begin().Add(-time.Second) }).PEM())
		}},
	} {
		o := h.opts
		c.set(&o)
		if _, err := Open(o, h.clock, serverlog.Discard().For("NETWORK")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

func TestRotation(t *testing.T) {
	h := newHouse(t)
	s := h.open(t)
	first := s.Set()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Watch(ctx); close(done) }()
	defer func() { stop(); <-done }()

	if err := s.Rotate(t.Context()); err != nil || s.Set() == first || s.Set().Subject != first.Subject {
		t.Fatalf("the same files again: %v", err)
	}
	same := s.Set()
	turn := func() {
		for h.clock.Waiting() == 0 {
			runtime.Gosched()
		}
		h.clock.Advance(lookEvery)
		for h.clock.Waiting() == 0 { // it waits again when it has looked
			runtime.Gosched()
		}
	}
	turn()
	if s.Set() != same {
		t.Error("files that are the same were read again")
	}
	h.Write("server.pem", h.Issue(h.ca, "the next").PEM())
	turn()
	next := s.Set()
	if next == same || next.Subject != "CN=the next,OU=clients,O=Ebb" {
		t.Errorf("the new certificate was not noticed: %s", next.Subject)
	}
	h.Write("server.pem", []byte("half of a f"))
	turn()
	if s.Set() != next {
		t.Error("a file of garbage was put in force")
	}
	if err := s.Rotate(t.Context()); err == nil || s.Set() != next {
		t.Errorf("a file of garbage was taken: %v", err)
	}
	h.Write("server.pem", h.Issue(h.ca, "the last").PEM())
	turn()
	if got := s.Set().Subject; got != "CN=the last,OU=clients,O=Ebb" {
		t.Errorf("after a file of garbage: %s", got)
	}
	// What was begun with the first set still goes by it.
	if got, _ := said(first, h.Issue(h.ca, "ann")); got != "" {
		t.Error(got)
	}
}

func TestSubject(t *testing.T) {
	atv := func(oid asn1.ObjectIdentifier, v any) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: oid, Value: v}
	}
	cn, ou, o, c, dc := asn1.ObjectIdentifier{2, 5, 4, 3}, asn1.ObjectIdentifier{2, 5, 4, 11}, asn1.ObjectIdentifier{2, 5, 4, 10}, asn1.ObjectIdentifier{2, 5, 4, 6}, asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 25}
	for _, x := range []struct {
		name pkix.RDNSequence
		want string
	}{
		{pkix.RDNSequence{{atv(c, "US")}, {atv(o, "MongoDB")}, {atv(ou, "Kernel")}, {atv(cn, "client")}}, "CN=client,OU=Kernel,O=MongoDB,C=US"},
		{pkix.RDNSequence{{atv(o, "a"), atv(ou, "b")}, {atv(cn, "c")}}, "CN=c,OU=b+O=a"},
		{pkix.RDNSequence{{atv(dc, "com")}, {atv(dc, "example")}, {atv(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, "a@b")}}, "emailAddress=a@b,DC=example,DC=com"},
		{pkix.RDNSequence{{atv(asn1.ObjectIdentifier{1, 2, 3, 4}, "x")}}, "1.2.3.4=x"},
		{pkix.RDNSequence{{atv(cn, `a,b+c"d\e<f>g;h=i`)}}, `CN=a\,b\+c\"d\\e\<f\>g\;h=i`},
		{pkix.RDNSequence{{atv(cn, " two ")}, {atv(cn, "#three")}, {atv(cn, " ")}}, `CN=\ ,CN=\#three,CN=\ two\ `},
		{pkix.RDNSequence{{atv(cn, "Zoë")}}, `CN=Zo\C3\AB`},
		{pkix.RDNSequence{{atv(cn, 5)}}, "CN=#020105"},
		{pkix.RDNSequence{{atv(cn, asn1.RawValue{Tag: asn1.TagT61String, Bytes: []byte("Zo\xeb")})}}, `CN=Zo\C3\AB`},
		{pkix.RDNSequence{{atv(cn, asn1.RawValue{Tag: asn1.TagBMPString, Bytes: []byte{0, 'Z', 0, 0xeb}})}}, `CN=Z\C3\AB`},
		{pkix.RDNSequence{}, ""},
	} {
		der, err := asn1.Marshal(x.name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := parseName(der)
		if err != nil || n.String() != x.want {
			t.Errorf("%v: %q, %v; want %q", x.name, n, err, x.want)
		}
	}
	if _, err := parseName([]byte{0x30, 5, 1}); err == nil {
		t.Error("garbage is a name")
	}
}

func TestMembers(t *testing.T) {
	h := newHouse(t)
	named := func(o, ou string, more ...certtest.Change) *certtest.Identity {
		return h.Issue(h.ca, "x", append(more, func(c *x509.Certificate) {
			c.Subject.Organization, c.Subject.OrganizationalUnit = []string{o}, []string{ou}
		})...)
	}
	extension := func(value string) certtest.Change {
		return func(c *x509.Certificate) {
			der, err := asn1.MarshalWithParams(value, "utf8")
			if err != nil {
				t.Fatal(err)
			}
			certtest.Extension([]int{1, 3, 6, 1, 4, 1, 34601, 2, 1, 2}, der)(c)
		}
	}
	for _, c := range []struct {
		members Members
		who     *certtest.Identity
		want    bool
	}{
		{Members{}, named("Ebb", "clients"), true},
		{Members{}, named("Ebb", "others"), false},
		{Members{}, h.Issue(h.ca, "x", func(c *x509.Certificate) { c.Subject.OrganizationalUnit = []string{"clients", "others"} }), false},
		{Members{Attributes: "O=Ebb, OU=members"}, named("Ebb", "members"), true},
		{Members{Attributes: "O=Ebb, OU=members"}, named("Ebb", "clients"), false},
		{Members{Attributes: "OU=members"}, named("Others", "members"), true},
		{Members{Attributes: `O=a\,b`}, named("a,b", "x"), true},
		{Members{ExtensionValue: "blue"}, named("Ebb", "clients"), false},
		{Members{ExtensionValue: "blue"}, named("y", "x", extension("blue")), true},
		{Members{ExtensionValue: "blue"}, named("y", "x", extension("red")), false},
	} {
		h.opts.Members = c.members
		store := h.open(t)
		if _, p := said(store.Set(), c.who); p == nil || p.Member != c.want {
			t.Errorf("%+v: %s: %+v", c.members, c.who.Cert.Subject, p)
		}
		inWords := c.want && c.members.ExtensionValue == ""
		if got := store.IsMemberName(c.who.Cert.Subject.String()); got != inWords {
			t.Errorf("%+v: %s in words: %v", c.members, c.who.Cert.Subject, got)
		}
	}
	h.opts.Members = Members{}
	store := h.open(t)
	for dn, want := range map[string]bool{"C=US, OU=clients, CN=any, O=Ebb": true, "O=Ebb,OU=clients": true, "O=Ebb": false, "ann": false, "": false, "O=Ebb,OU=clients,what": false} {
		if store.IsMemberName(dn) != want {
			t.Errorf("%q is a member's: %v", dn, !want)
		}
	}
	for _, bad := range []string{"O", "what=x", `O=a\`, "O=a,"} {
		if (&Options{KeyFile: "x", CAFile: "x", Members: Members{Attributes: bad}}).Check() == nil {
			t.Errorf("%q is a name", bad)
		}
	}
}

func TestRoles(t *testing.T) {
	h := newHouse(t)
	with := func(der []byte) *certtest.Identity {
		return h.Issue(h.ca, "ann", certtest.Extension([]int{1, 3, 6, 1, 4, 1, 34601, 2, 1, 1}, der))
	}
	// The extension of MongoDB's manual: backup of admin, readAnyDatabase of admin.
	good := []byte("\x31\x27\x30\x0f\x0c\x06backup\x0c\x05admin\x30\x14\x0c\x0breadAnyData\x0c\x05admin")
	good[1] = byte(len(good) - 2)
	set := h.open(t).Set()
	if got, p := said(set, with(good)); got != "" || len(p.Roles) != 2 || p.Roles[0] != (Role{"backup", "admin"}) || p.Roles[1].Name != "readAnyData" {
		t.Errorf("%q, %+v", got, p)
	}
	if _, p := said(set, h.Issue(h.ca, "ann")); p.Roles != nil {
		t.Errorf("roles of nothing: %+v", p.Roles)
	}
	for _, bad := range []string{"", "\x31\x03\x30\x05\x0c", "\x30\x00", "\x31\x09\x30\x07\x02\x01\x05\x0c\x02ab", string(good) + "x", "\x31\x08\x30\x06\x0c\x00\x0c\x02ab"} {
		if got, p := said(set, with([]byte(bad))); got == "" {
			t.Errorf("%q has the roles %+v", bad, p.Roles)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add([]byte("\x30\x0f\x31\x0d\x30\x0b\x06\x03\x55\x04\x03\x0c\x04a,b "))
	f.Fuzz(func(t *testing.T, der []byte) {
		if n, err := parseName(der); err == nil {
			if s := n.String(); strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) {
				t.Errorf("%q is not ASCII", s)
			}
		}
		if roles, err := parseRoles(der); err == nil && len(roles) > maxRoles {
			t.Error(len(roles))
		}
	})
}
