package command

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
)

// loginCounts counts logins since the start, as serverStatus tells of them.
type loginCounts struct {
	supportedMechs atomic.Int64
	sha1, sha256   mechanismCounts
	x509           mechanismCounts
	plain, oidc    mechanismCounts
}

// mechanismCounts are those by one mechanism: all of them, those that began within hello, and those of members.
type mechanismCounts struct{ all, speculative, members received }

type received struct{ received, successful atomic.Int64 }

// of is the counts of a mechanism that is known.
func (c *loginCounts) of(mechanism string) *mechanismCounts {
	switch mechanism {
	case scram.SHA1:
		return &c.sha1
	case scram.SHA256:
		return &c.sha256
	case plainMechanism:
		return &c.plain
	case oidcMechanism:
		return &c.oidc
	}
	return &c.x509
}

// begun counts a login that somebody has begun.
func (c *mechanismCounts) begun(speculative bool) {
	c.all.received.Add(1)
	if speculative {
		c.speculative.received.Add(1)
	}
}

// succeeded counts one that has succeeded.
func (c *mechanismCounts) succeeded(speculative, member bool) {
	c.all.successful.Add(1)
	if speculative {
		c.speculative.successful.Add(1)
	}
	if member { // who is one is known at the end
		c.members.received.Add(1)
		c.members.successful.Add(1)
	}
}

// append appends serverStatus's security.authentication.
func (c *loginCounts) append(b *bson.Builder, offers func(mechanism string) bool) {
	b.Object("authentication").Int64("saslSupportedMechsReceived", c.supportedMechs.Load()).Object("mechanisms")
	for _, m := range []string{x509Mechanism, oidcMechanism, plainMechanism, scram.SHA1, scram.SHA256} {
		if (m == oidcMechanism || m == plainMechanism) && !offers(m) {
			continue
		}
		of := c.of(m)
		b.Object(m)
		for _, kind := range []struct {
			name string
			r    *received
		}{{"speculativeAuthenticate", &of.speculative}, {"clusterAuthenticate", &of.members}, {"authenticate", &of.all}} {
			b.Object(kind.name).Int64("received", kind.r.received.Load()).Int64("successful", kind.r.successful.Load()).End()
		}
		b.End()
	}
	b.End().End()
}
