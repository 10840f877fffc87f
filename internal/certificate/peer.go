package certificate

import (
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"strings"
	"time"
)

// The extensions that MongoDB has given a meaning: roles that the certificate grants, and whose cluster it is of.
const (
	rolesOID   = "1.3.6.1.4.1.34601.2.1.1"
	clusterOID = "1.3.6.1.4.1.34601.2.1.2"
)

// maxRoles bounds the roles of a certificate.
const maxRoles = 1000

// Peer is a client by its certificate, which was found to be good.
type Peer struct {
	// Subject is its name, as users of $external are called.
	Subject string
	// Roles are those that the certificate itself grants; nil where it says nothing of roles.
	Roles []Role
	// Member says that it is of a member of the same cluster.
	Member bool
	// NotAfter is until when it is good.
	NotAfter time.Time
}

// Role is the name of a role and of the database that it is of.
type Role struct{ Name, DB string }

// readPeer reads a certificate. isMember says whose name is a member's, where there is no value that the extension for that must have.
func readPeer(c *x509.Certificate, isMember func(name) bool, value string) (*Peer, error) {
	n, err := parseName(c.RawSubject)
	if err != nil {
		return nil, err
	}
	p := &Peer{Subject: n.String(), NotAfter: c.NotAfter}
	cluster := ""
	for _, e := range c.Extensions {
		switch e.Id.String() {
		case rolesOID:
			if p.Roles, err = parseRoles(e.Value); err != nil {
				return nil, err
			}
		case clusterOID:
			if rest, err := asn1.UnmarshalWithParams(e.Value, &cluster, "utf8"); err != nil || len(rest) > 0 {
				return nil, fmt.Errorf("a certificate's cluster membership cannot be read: %v", err)
			}
		}
	}
	if value != "" {
		p.Member = cluster == value
	} else {
		p.Member = isMember(n)
	}
	return p, nil
}

type roleDER struct {
	Name asn1.RawValue
	DB   asn1.RawValue
}

// parseRoles reads a set of roles: of each its name and its database, both UTF-8.
func parseRoles(der []byte) ([]Role, error) {
	var set []roleDER
	if rest, err := asn1.UnmarshalWithParams(der, &set, "set"); err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("a certificate's roles cannot be read: %v", err)
	}
	if len(set) > maxRoles {
		return nil, fmt.Errorf("a certificate has %d roles, more than %d", len(set), maxRoles)
	}
	roles := []Role{}
	for _, r := range set {
		if r.Name.Tag != asn1.TagUTF8String || r.DB.Tag != asn1.TagUTF8String {
			return nil, fmt.Errorf("a certificate's roles cannot be read: a name is no UTF-8 string")
		}
		role := Role{string(r.Name.Bytes), string(r.DB.Bytes)}
		if role.Name == "" || strings.ContainsRune(role.Name+role.DB, 0) {
			return nil, fmt.Errorf("a certificate's roles cannot be read: a name is empty or has a zero byte")
		}
		roles = append(roles, role)
	}
	return roles, nil
}
