// Package certtest makes authorities, certificates and lists of revoked ones for tests. It must not know what they are used for.
package certtest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Identity is a certificate and its key.
type Identity struct {
	Cert *x509.Certificate
	Key  crypto.Signer
}

// Maker makes certificates that are good from an hour before Now until a year later.
type Maker struct {
	T   testing.TB
	Now time.Time
	// Dir is where Write writes.
	Dir string
}

// New returns a Maker with a folder of its own.
func New(t testing.TB, now time.Time) *Maker { return &Maker{t, now, t.TempDir()} }

// Change is what a certificate has that others have not.
type Change func(*x509.Certificate)

// Named gives a certificate another name.
func Named(n pkix.Name) Change { return func(c *x509.Certificate) { c.Subject = n } }

// Extension adds an extension.
func Extension(oid []int, value []byte) Change {
	return func(c *x509.Certificate) {
		c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: oid, Value: value})
	}
}

// Authority makes one that has signed itself.
func (m *Maker) Authority(cn string) *Identity { return m.Issue(nil, cn, IsCA) }

// IsCA has a certificate be an authority's.
func IsCA(c *x509.Certificate) {
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
}

// Local has a certificate be good for a server on this machine.
func Local(c *x509.Certificate) {
	c.DNSNames, c.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
}

// Issue has by, or itself where that is nil, make a certificate for "CN=cn,OU=clients,O=Ebb".
func (m *Maker) Issue(by *Identity, cn string, changes ...Change) *Identity {
	m.T.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	m.must(err)
	return m.IssueFor(key, by, cn, changes...)
}

// IssueFor is Issue for a key that is there.
func (m *Maker) IssueFor(key crypto.Signer, by *Identity, cn string, changes ...Change) *Identity {
	m.T.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	m.must(err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: cn, Organization: []string{"Ebb"}, OrganizationalUnit: []string{"clients"}},
		NotBefore: m.Now.Add(-time.Hour), NotAfter: m.Now.Add(365 * 24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
	}
	for _, c := range changes {
		c(template)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.Cert, by.Key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	m.must(err)
	cert, err := x509.ParseCertificate(der)
	m.must(err)
	return &Identity{cert, key}
}

// Revoke has by make a list of the certificates that are no good any more.
func (m *Maker) Revoke(by *Identity, from, until time.Time, gone ...*Identity) []byte {
	m.T.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: from, NextUpdate: until}
	for _, g := range gone {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: g.Cert.SerialNumber, RevocationTime: from})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, by.Cert, by.Key)
	m.must(err)
	return Block("X509 CRL", der)
}

// Write writes a file of parts and returns its path.
func (m *Maker) Write(name string, parts ...[]byte) string {
	m.T.Helper()
	path := filepath.Join(m.Dir, name)
	m.must(os.WriteFile(path, bytes.Join(parts, nil), 0o600))
	return path
}

func (m *Maker) must(err error) {
	m.T.Helper()
	if err != nil {
		m.T.Fatal(err)
	}
}

// Block is der in PEM.
func Block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// CertPEM is the certificate alone.
func (i *Identity) CertPEM() []byte { return Block("CERTIFICATE", i.Cert.Raw) }

// PEM is the certificate and its key, as certificateKeyFile has them.
func (i *Identity) PEM() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(i.Key)
	if err != nil {
		panic(err) // of the kinds of keys that are made here none cannot be
	}
	return append(i.CertPEM(), Block("PRIVATE KEY", der)...)
}

// TLS is the identity as package tls knows one.
func (i *Identity) TLS() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{i.Cert.Raw}, PrivateKey: i.Key, Leaf: i.Cert}
}

// Pool is a pool of authorities.
func Pool(of ...*Identity) *x509.CertPool {
	p := x509.NewCertPool()
	for _, i := range of {
		p.AddCert(i.Cert)
	}
	return p
}
