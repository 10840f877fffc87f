// Package oidc takes tokens by which issuers of OpenID Connect vouch for users. It knows the issuers' keys, and neither users nor what they
// may do; it keeps no tokens.
package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// MaxToken is how long a token may be, in bytes.
	MaxToken = 16 << 10
	// maxName is how long the name of a user or a role may be.
	maxName = 1024
)

// Options are what issuers are asked by.
type Options struct {
	Clock clock.Clock
	Log   *slog.Logger
	// Quiet is how long a token with a key that nobody knows asks for no new keys after somebody has fetched some.
	Quiet func() time.Duration
	// Roots are the authorities of the issuers' certificates; nil are the machine's.
	Roots *x509.CertPool
}

// Issuers are those whose tokens are taken.
type Issuers struct {
	providers []*Provider
	issuers   map[string]*issuer // by address
	clock     clock.Clock
	log       *slog.Logger
}

// New returns the Issuers of providers, of which none was asked yet.
func New(providers []*Provider, o Options) *Issuers {
	s := &Issuers{providers: providers, issuers: map[string]*issuer{}, clock: o.Clock, log: o.Log}
	c := client(o)
	for _, p := range providers {
		if s.issuers[p.Issuer] == nil {
			s.issuers[p.Issuer] = newIssuer(p, o, c)
		}
	}
	return s
}

func tlsConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// Run fetches all keys, and those of issuers that are polled again and again, until ctx ends.
func (s *Issuers) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, i := range s.issuers {
		all.Go(func() {
			_ = i.refresh(ctx, false) // which logs why it failed
			for i.poll > 0 && clock.Wait(ctx, s.clock, i.poll) == nil {
				_ = i.refresh(ctx, false)
			}
		})
	}
	all.Wait()
}

// Provider is the one that a user of the name has, "" where the user has not said one: where such a user gets a token.
func (s *Issuers) Provider(name string) (*Provider, error) {
	if name == "" {
		var only *Provider
		for _, p := range s.providers {
			if p.HumanFlows && only != nil {
				return nil, errors.New("there are several identity providers, and the client names no user")
			}
			if p.HumanFlows {
				only = p
			}
		}
		if only != nil {
			return only, nil
		}
	}
	for _, p := range s.providers {
		if name != "" && (p.MatchPattern == nil && p.HumanFlows || p.MatchPattern != nil && p.MatchPattern.MatchString(name)) {
			return p, nil
		}
	}
	return nil, errors.New("there is no identity provider for the user")
}

// Voucher is what a token says of a user, who is called Name.
type Voucher struct {
	// Principal is the user's name at the provider, Name the one here.
	Principal, Name string
	// Roles are the names of the user's roles, where RolesKnown.
	Roles      []string
	RolesKnown bool
	// Expires is when the token does.
	Expires time.Time
	// Logged are the claims that the log shows.
	Logged map[string]any

	issuer *issuer
	key    key
}

// Holds says whether the token is still good: it has not expired, and its issuer has not taken the key back.
func (v *Voucher) Holds(now time.Time) bool { return now.Before(v.Expires) && v.issuer.has(v.key) }

// Claimed is whom a token says that it vouches for, by which nothing is shown yet; "" where it says nothing that makes sense.
func (s *Issuers) Claimed(token string) string {
	p, _, claims, err := s.open(token)
	if err != nil {
		return ""
	}
	name, err := p.principal(claims)
	if err != nil {
		return ""
	}
	return p.AuthNamePrefix + "/" + name
}

// claims are what a token says, by name.
type claims map[string]json.RawMessage

// open reads a token without a look at whether it is genuine.
func (s *Issuers) open(token string) (*Provider, *jose.JSONWebSignature, claims, error) {
	if len(token) > MaxToken {
		return nil, nil, nil, fmt.Errorf("the token is longer than %d bytes", MaxToken)
	}
	signed, err := jose.ParseSignedCompact(token, signatures())
	if err != nil {
		return nil, nil, nil, err
	}
	payload := signed.UnsafePayloadWithoutVerification()
	var says struct {
		Issuer   string   `json:"iss"`
		Audience audience `json:"aud"`
	}
	c := claims{}
	if err := errors.Join(json.Unmarshal(payload, &says), json.Unmarshal(payload, &c)); err != nil {
		return nil, nil, nil, err
	}
	for _, p := range s.providers {
		if p.Issuer == says.Issuer && slices.Contains(says.Audience, p.Audience) {
			return p, signed, c, nil
		}
	}
	return nil, nil, nil, fmt.Errorf("no identity provider has the issuer %.200q and one of the audiences %.200q", says.Issuer, []string(says.Audience))
}

// audience is one text, or several.
type audience []string

// UnmarshalJSON reads either.
func (a *audience) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// Verify says whom a token vouches for. The error is for the log, and holds nothing by which anybody could log in.
func (s *Issuers) Verify(ctx context.Context, token string) (*Voucher, error) {
	v, err := s.verify(ctx, token)
	if err != nil {
		return nil, short(err)
	}
	return v, nil
}

func (s *Issuers) verify(ctx context.Context, token string) (*Voucher, error) {
	p, signed, _, err := s.open(token)
	if err != nil {
		return nil, err
	}
	used := &usedKey{issuer: s.issuers[p.Issuer], kid: signed.Signatures[0].Header.KeyID}
	var algorithms []string
	for _, a := range signatures() {
		algorithms = append(algorithms, string(a))
	}
	checked, err := oidc.NewVerifier(p.Issuer, used, &oidc.Config{ClientID: p.Audience, SupportedSigningAlgs: algorithms, Now: s.clock.Now}).Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	c := claims{}
	if err := checked.Claims(&c); err != nil {
		return nil, err
	}
	v := &Voucher{Expires: checked.Expiry, Logged: c.logged(p.LogClaims), issuer: used.issuer, key: used.key}
	if v.Principal, err = p.principal(c); err != nil {
		return nil, err
	}
	v.Name = p.AuthNamePrefix + "/" + v.Principal
	if p.AuthorizationClaim != "" {
		v.RolesKnown = true
		if v.Roles, err = p.roles(c); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// usedKey is the keys of an issuer as the library asks for them, and remembers which one a token was signed with.
type usedKey struct {
	issuer *issuer
	kid    string
	key    key
}

// VerifySignature returns what a token says where its signature is good.
func (u *usedKey) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	if u.kid == "" {
		return nil, errors.New("the token does not say by which key it is signed")
	}
	signed, err := jose.ParseSignedCompact(token, signatures())
	if err != nil {
		return nil, err
	}
	if u.key, err = u.issuer.find(ctx, u.kid); err != nil {
		return nil, err
	}
	if by := signed.Signatures[0].Header.Algorithm; u.key.Algorithm != "" && u.key.Algorithm != by {
		return nil, fmt.Errorf("the key is one of %.20s, and the token is signed by %.20s", u.key.Algorithm, by)
	}
	return signed.Verify(u.key.Key)
}

func (p *Provider) principal(c claims) (string, error) {
	var name string
	if json.Unmarshal(c[p.PrincipalName], &name) != nil || name == "" || len(name) > maxName || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("the claim %s is no name of a user", p.PrincipalName)
	}
	return name, nil
}

// roles are those that the token says the user has.
func (p *Provider) roles(c claims) ([]string, error) {
	var names audience
	if json.Unmarshal(c[p.AuthorizationClaim], &names) != nil {
		return nil, fmt.Errorf("the claim %s names no roles", p.AuthorizationClaim)
	}
	roles := make([]string, 0, len(names))
	for _, name := range names {
		if len(name) > maxName || strings.ContainsRune(name, 0) {
			return nil, fmt.Errorf("the claim %s has what is no name of a role", p.AuthorizationClaim)
		}
		roles = append(roles, p.AuthNamePrefix+"/"+name)
	}
	return roles, nil
}

func (c claims) logged(names []string) map[string]any {
	shown := map[string]any{}
	for _, name := range names {
		var v any
		if json.Unmarshal(c[name], &v) == nil {
			shown[name] = v
		}
	}
	return shown
}

// ErrOff is the error of who works at keys where there are none.
func ErrOff() error {
	return mongoerr.New(mongoerr.IllegalOperation, "OIDC is not enabled on this node")
}

// named are the issuers of those addresses, all where there are none; nil is no Issuers.
func (s *Issuers) named(addresses []string) ([]*issuer, error) {
	if s == nil {
		return nil, ErrOff()
	}
	if addresses == nil {
		addresses = slices.Sorted(maps.Keys(s.issuers))
	}
	var found []*issuer
	for _, a := range addresses {
		i := s.issuers[a]
		if i == nil {
			return nil, mongoerr.New(mongoerr.NoSuchKey, "There is no identity provider with the issuer '%.200s'", a)
		}
		found = append(found, i)
	}
	return found, nil
}

// Refresh fetches the keys of those issuers, of all where addresses is nil. Where that fails the keys of that issuer are gone if flush is
// set, and all other issuers are asked nevertheless.
func (s *Issuers) Refresh(ctx context.Context, addresses []string, flush bool) error {
	found, err := s.named(addresses)
	if err != nil {
		return err
	}
	var failed []error
	for _, i := range found {
		if err := i.refresh(ctx, flush); err != nil {
			failed = append(failed, err)
		}
	}
	if failed != nil {
		return mongoerr.New(mongoerr.OperationFailed, "%s", errors.Join(failed...))
	}
	return nil
}

// AppendKeys appends the keys of those issuers, of all where addresses is nil.
func (s *Issuers) AppendKeys(b *bson.Builder, addresses []string) error {
	found, err := s.named(addresses)
	if err != nil {
		return err
	}
	for _, i := range found {
		keys := *i.keys.Load()
		b.Object(i.url).Array("keys")
		for n, kid := range slices.Sorted(maps.Keys(keys)) {
			b.Object(bson.IndexKey(n))
			appendKey(b, keys[kid])
			b.End()
		}
		b.End().End()
	}
	return nil
}

// appendKey appends what is public of a key, in the order in which such are written.
func appendKey(b *bson.Builder, k key) {
	text, err := k.MarshalJSON()
	var fields map[string]any
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return
	}
	for _, name := range []string{"kid", "kty", "use", "alg", "crv", "x", "y", "n", "e"} {
		if v, ok := fields[name].(string); ok {
			b.String(name, v)
		}
	}
}
