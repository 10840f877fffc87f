package oidc

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// maxProviders is how many providers a server believes.
	maxProviders = 64
	// maxPollSecs is how rarely the keys are fetched at most.
	maxPollSecs = 7 * 24 * 3600
)

// Provider is one element of the parameter oidcIdentityProviders: tokens of which issuer are taken, and whom they make of a user.
type Provider struct {
	// Issuer and Audience are what tokens must name as iss and aud: so each token is at most one provider's.
	Issuer, Audience string
	// AuthNamePrefix stands before the names of users and roles, with a slash between.
	AuthNamePrefix string
	// MatchPattern tells by a user's name whose the user is; nil matches all.
	MatchPattern *regexp.Regexp
	// ClientID and RequestScopes are what clients are told who have to get a token first.
	ClientID      string
	RequestScopes []string
	// PrincipalName is the claim that has the user's name.
	PrincipalName string
	// AuthorizationClaim is the claim that has the names of the user's roles; "" where users are stored.
	AuthorizationClaim string
	// LogClaims are the claims that the log shows of a login.
	LogClaims []string
	// HumanFlows: people log in, and are told where they get a token.
	HumanFlows bool
	// Poll is how often the keys are fetched; 0 for only when somebody needs one.
	Poll time.Duration
}

// Parse reads the parameter.
func Parse(list bson.Doc) ([]*Provider, error) {
	var all []*Provider
	for it := list.Iter(); it.Next(); {
		if len(all) == maxProviders {
			return nil, bad("there may be %d providers at most", maxProviders)
		}
		if it.Value().Type != bson.TypeObject {
			return nil, bad("provider %s is no document", it.Key())
		}
		p, err := parseProvider(it.Value().Doc())
		if err != nil {
			return nil, bad("provider %s: %v", it.Key(), err)
		}
		all = append(all, p)
	}
	return all, agree(all)
}

func bad(format string, args ...any) error {
	return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter oidcIdentityProviders: "+format, args...)
}

func parseProvider(d bson.Doc) (*Provider, error) {
	p := &Provider{PrincipalName: "sub", HumanFlows: true, LogClaims: []string{"iss", "sub"}}
	useClaim := true
	seen := map[string]bool{}
	for it := d.Iter(); it.Next(); {
		key, v := it.Key(), it.Value()
		if seen[key] {
			return nil, fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		if err := p.set(key, v, &useClaim); err != nil {
			return nil, err
		}
	}
	for _, need := range []struct {
		field, value string
		when         bool
	}{
		{"issuer", p.Issuer, true}, {"audience", p.Audience, true}, {"authNamePrefix", p.AuthNamePrefix, true}, {"principalName", p.PrincipalName, true},
		{"clientId", p.ClientID, p.HumanFlows}, {"authorizationClaim", p.AuthorizationClaim, useClaim},
	} {
		if need.when && need.value == "" {
			return nil, fmt.Errorf("%s is missing", need.field)
		}
	}
	if !useClaim {
		p.AuthorizationClaim = ""
	}
	if !legalPrefix().MatchString(p.AuthNamePrefix) {
		return nil, fmt.Errorf("authNamePrefix may have letters, digits, _ and - alone")
	}
	return p, checkURL(p.Issuer)
}

func legalPrefix() *regexp.Regexp { return regexp.MustCompile(`\A[A-Za-z0-9_-]+\z`) }

func (p *Provider) set(key string, v bson.Value, useClaim *bool) (err error) {
	texts := map[string]*string{"issuer": &p.Issuer, "audience": &p.Audience, "authNamePrefix": &p.AuthNamePrefix, "clientId": &p.ClientID,
		"principalName": &p.PrincipalName, "authorizationClaim": &p.AuthorizationClaim}
	switch key {
	case "matchPattern":
		var text string
		if err = str(&text, key, v); err == nil {
			p.MatchPattern, err = regexp.Compile(text)
		}
	case "requestScopes":
		err = strs(&p.RequestScopes, key, v)
	case "logClaims":
		err = strs(&p.LogClaims, key, v)
	case "useAuthorizationClaim":
		err = yes(useClaim, key, v)
	case "supportsHumanFlows":
		err = yes(&p.HumanFlows, key, v)
	case "JWKSPollSecs":
		if !v.IsNumber() || v.IsNaN() || v.AsDouble() < 0 || v.AsDouble() > maxPollSecs {
			return fmt.Errorf("JWKSPollSecs is a number from 0 to %d", maxPollSecs)
		}
		p.Poll = time.Duration(v.TruncInt64()) * time.Second
	default:
		if to := texts[key]; to != nil {
			return str(to, key, v)
		}
		return fmt.Errorf("there is no field %s", key)
	}
	return err
}

func str(to *string, key string, v bson.Value) error {
	if v.Type != bson.TypeString {
		return fmt.Errorf("%s is no string", key)
	}
	*to = strings.Clone(v.Str())
	return nil
}

func strs(to *[]string, key string, v bson.Value) error {
	if v.Type != bson.TypeArray {
		return fmt.Errorf("%s is no array", key)
	}
	*to = []string{}
	for it := v.Doc().Iter(); it.Next(); {
		var s string
		if err := str(&s, key+"."+it.Key(), it.Value()); err != nil {
			return err
		}
		*to = append(*to, s)
	}
	return nil
}

func yes(to *bool, key string, v bson.Value) error {
	if v.Type != bson.TypeBool {
		return fmt.Errorf("%s is no boolean", key)
	}
	*to = v.Bool()
	return nil
}

// agree looks at whether it is clear whose a token or a user is.
func agree(all []*Provider) error {
	human, patterns := 0, true
	for i, p := range all {
		if p.HumanFlows {
			human++
		}
		if p.MatchPattern != nil && !patterns {
			return bad("a provider with a matchPattern stands behind one without")
		}
		patterns = p.MatchPattern != nil
		for _, q := range all[:i] {
			switch {
			case p.Issuer == q.Issuer && p.Audience == q.Audience:
				return bad("two providers have the issuer %s and the audience %s", p.Issuer, p.Audience)
			case p.Issuer == q.Issuer && p.Poll != q.Poll:
				return bad("the providers of the issuer %s differ in JWKSPollSecs", p.Issuer)
			case p.AuthNamePrefix == q.AuthNamePrefix && p.Issuer != q.Issuer:
				return bad("two issuers have the authNamePrefix %s", p.AuthNamePrefix)
			}
		}
	}
	if human < 2 {
		return nil
	}
	for _, p := range all {
		if p.HumanFlows && p.MatchPattern == nil {
			return bad("a provider with supportsHumanFlows needs a matchPattern, since there are several")
		}
	}
	return nil
}

// checkURL wants an address that nobody between can answer for: over TLS, or on this machine.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return fmt.Errorf("%.200q is no address of an issuer", text)
	case u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%.200q does not begin with https://", text)
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
