package certificate

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"
	"time"
)

// revocations are lists of revoked certificates.
type revocations struct {
	byIssuer map[string][]*revocationList // the issuer's subject, raw
}

type revocationList struct {
	list    *x509.RevocationList
	serials map[string]bool
	// signers are the issuers, raw, whose signature the list was found to have, or not: a list may be long.
	signers sync.Map
}

// readRevocations reads a file of lists, each made by an authority for the certificates that it has issued.
func readRevocations(name string) (*revocations, error) {
	text, err := read(name, maxListBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read CRL file: %s: %w", name, err)
	}
	r := &revocations{byIssuer: map[string][]*revocationList{}}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("cannot read CRL file: %s: %w", name, err)
		}
		l := &revocationList{list: list, serials: map[string]bool{}}
		for _, e := range list.RevokedCertificateEntries {
			l.serials[e.SerialNumber.String()] = true
		}
		issuer := string(list.RawIssuer)
		r.byIssuer[issuer] = append(r.byIssuer[issuer], l)
	}
	if len(r.byIssuer) == 0 {
		return nil, fmt.Errorf("cannot read CRL file: %s: there is no list in it", name)
	}
	return r, nil
}

// check refuses a certificate that its issuer has revoked, and one whose issuer has no list that is valid now.
func (r *revocations) check(leaf, issuer *x509.Certificate, now time.Time) error {
	why := "unable to get certificate CRL"
	valid := false
	for _, l := range r.byIssuer[string(leaf.RawIssuer)] {
		switch {
		case !l.isSignedBy(issuer):
			why = "CRL signature failure"
		case l.serials[leaf.SerialNumber.String()]:
			return invalid("certificate revoked")
		case now.Before(l.list.ThisUpdate):
			why = "CRL is not yet valid"
		case !l.list.NextUpdate.IsZero() && now.After(l.list.NextUpdate):
			why = "CRL has expired"
		default:
			valid = true
		}
	}
	if !valid {
		return invalid(why)
	}
	return nil
}

// isSignedBy says whether issuer, which is believed, has made the list.
func (l *revocationList) isSignedBy(issuer *x509.Certificate) bool {
	if known, ok := l.signers.Load(string(issuer.Raw)); ok {
		return known.(bool)
	}
	signed := l.list.CheckSignatureFrom(issuer) == nil
	l.signers.Store(string(issuer.Raw), signed)
	return signed
}
