package certificate

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// authority says which certificates of clients are good: which roots are believed, and what was revoked.
type authority struct {
	roots, between *x509.CertPool
	revoked        *revocations // nil: nothing is
}

// readAuthority reads the authorities of a file, or the machine's where name is "". Only those that have signed themselves are roots.
func readAuthority(name string) (*authority, error) {
	if name == "" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("cannot read the system's certificate authorities: %w", err)
		}
		return &authority{roots: roots, between: x509.NewCertPool()}, nil
	}
	text, err := read(name, maxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read certificate authority file: %s: %w", name, err)
	}
	a := &authority{roots: x509.NewCertPool(), between: x509.NewCertPool()}
	count := 0
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("cannot read certificate authority file: %s: %w", name, err)
		}
		if count++; count > maxCertificates {
			return nil, fmt.Errorf("cannot read certificate authority file: %s: there are more than %d certificates in it", name, maxCertificates)
		}
		if bytes.Equal(c.RawSubject, c.RawIssuer) {
			a.roots.AddCert(c)
		} else {
			a.between.AddCert(c)
		}
	}
	if count == 0 {
		return nil, fmt.Errorf("cannot read certificate authority file: %s: there is no certificate in it", name)
	}
	return a, nil
}

// RefusedError is why a peer is not let in, in MongoDB's words.
type RefusedError struct{ text string }

func (e *RefusedError) Error() string { return e.text }

func invalid(why string) error {
	return &RefusedError{"SSL peer certificate validation failed: " + why}
}

// verify says whether somebody's certificates, its own first, are good now for a client or a server, as usage says.
func (a *authority) verify(chain []*x509.Certificate, now time.Time, usage x509.ExtKeyUsage) error {
	between := a.between
	if len(chain) > 1 {
		between = between.Clone()
		for _, c := range chain[1:] {
			between.AddCert(c)
		}
	}
	leaf := chain[0]
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: a.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	if err != nil {
		return invalid(words(leaf, err, now))
	}
	if a.revoked == nil {
		return nil
	}
	for _, c := range chains {
		issuer := c[0] // who has signed itself
		if len(c) > 1 {
			issuer = c[1]
		}
		if err = a.revoked.check(leaf, issuer, now); err == nil {
			return nil
		}
	}
	return err
}

// checkHost says whether a certificate is a host's: by its alternative names, or by its subject where it has none.
func checkHost(c *x509.Certificate, host string) error {
	if len(c.DNSNames)+len(c.IPAddresses)+len(c.EmailAddresses)+len(c.URIs) > 0 {
		if err := c.VerifyHostname(host); err != nil {
			return &RefusedError{"The server certificate does not match the host name. Hostname: " + host + " does not match SAN(s): " + alternativeNames(c)}
		}
		return nil
	}
	cn := c.Subject.CommonName
	if isNamed(host, cn) {
		return nil
	}
	return &RefusedError{"The server certificate does not match the host name. Hostname: " + host + " does not match CN: " + cn}
}

// isNamed says whether a common name is a host's. A star stands for the first part of a host's name.
func isNamed(host, cn string) bool {
	host, cn = strings.ToLower(strings.TrimSuffix(host, ".")), strings.ToLower(strings.TrimSuffix(cn, "."))
	if domain, isWild := strings.CutPrefix(cn, "*."); isWild {
		_, host, _ = strings.Cut(host, ".")
		cn = domain
	}
	return host != "" && host == cn
}

func alternativeNames(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return strings.Join(names, ", ")
}

// words are OpenSSL's for what is wrong with a certificate, which operators search for.
func words(leaf *x509.Certificate, err error, now time.Time) string {
	if bad, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		switch bad.Reason {
		case x509.Expired:
			if bad.Cert != nil && now.Before(bad.Cert.NotBefore) {
				return "certificate is not yet valid"
			}
			return "certificate has expired"
		case x509.IncompatibleUsage:
			return "unsuitable certificate purpose"
		}
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		if bytes.Equal(leaf.RawSubject, leaf.RawIssuer) {
			return "self-signed certificate"
		}
		return "unable to get local issuer certificate"
	}
	return err.Error()
}
