package oidc

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/ebbdb/ebb/internal/auth/oidc/oidctest"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
)

// world is an issuer and who believes it, on a clock that stands.
type world struct {
	*oidctest.Issuer
	*Issuers
	t     *testing.T
	clock *clock.Fake
}

func newWorld(t *testing.T, issuer *oidctest.Issuer, more string) *world {
	t.Helper()
	list := fmt.Sprintf(`[{issuer: %q, audience: "ebb", authNamePrefix: "corp", clientId: "client", authorizationClaim: "groups"%s}]`, issuer.URL, more)
	c := clock.NewFake(time.Unix(1_800_000_000, 0))
	return &world{issuer, New(parse(t, list), Options{Clock: c, Log: slog.New(slog.DiscardHandler), Quiet: func() time.Duration { return time.Minute }}), t, c}
}

func parse(t *testing.T, text string) []*Provider {
	t.Helper()
	p, err := Parse(bson.MustParse(text).Doc())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// good are the claims of a token that is.
func (w *world) good(change ...any) map[string]any {
	c := map[string]any{"sub": "ann", "aud": "ebb", "exp": w.clock.Now().Add(time.Hour).Unix(), "groups": []string{"dev", "ops"}}
	for i := 0; i < len(change); i += 2 {
		c[change[i].(string)] = change[i+1]
	}
	return c
}

// refused wants a token not to be taken, for that reason.
func (w *world) refused(token, why string) {
	w.t.Helper()
	if v, err := w.Verify(w.t.Context(), token); err == nil || !strings.Contains(err.Error(), why) {
		w.t.Errorf("%v, %v; want %s", v, err, why)
	}
}

func (w *world) taken(token string) *Voucher {
	w.t.Helper()
	v, err := w.Verify(w.t.Context(), token)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func TestVerify(t *testing.T) {
	w := newWorld(t, oidctest.New(t), "")
	w.AddEC("two")
	for _, kid := range []string{"one", "two"} {
		v := w.taken(w.Token(kid, w.good()))
		if v.Name != "corp/ann" || strings.Join(v.Roles, " ") != "corp/dev corp/ops" || !v.RolesKnown || !v.Expires.Equal(w.clock.Now().Add(time.Hour)) ||
			v.Logged["sub"] != "ann" || len(v.Logged) != 2 {
			t.Errorf("%+v", v)
		}
	}
	if v := w.taken(w.Token("one", w.good("aud", []string{"other", "ebb"}, "groups", "dev"))); strings.Join(v.Roles, " ") != "corp/dev" {
		t.Errorf("%+v", v)
	}
	for why, change := range map[string][]any{
		"token is expired":    {"exp", w.clock.Now().Unix() - 1},
		"not before":          {"nbf", w.clock.Now().Unix() + 3600},
		`audiences ["other"]`: {"aud", "other"},
		"audiences []":        {"aud", []string{}},
		"no identity":         {"iss", "https://other.example.com"},
		"sub is no name":      {"sub", ""},
		"field idToken.sub":   {"sub", 7},
		"name of a user":      {"sub", "a\x00b"},
		"names no roles":      {"groups", map[string]any{"a": 1}},
		"claim groups":        {"groups", []any{"a", 1}},
		"longer than 16384":   {"pad", strings.Repeat("x", MaxToken)},
	} {
		w.refused(w.Token("one", w.good(change...)), why)
	}
	for claim, why := range map[string]string{"groups": "names no roles", "exp": "token is expired", "sub": "sub is no name", "aud": "audiences []"} {
		missing := w.good()
		delete(missing, claim)
		w.refused(w.Token("one", missing), why)
	}
}

// TestForged: what is not signed by a key of the issuer, in a way that keys are for, is not taken.
func TestForged(t *testing.T) {
	w := newWorld(t, oidctest.New(t), "")
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	w.refused(w.Sign(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: own, KeyID: "one"}}, w.good()), "verify signature")
	w.refused(w.Sign(jose.SigningKey{Algorithm: jose.RS256, Key: own}, w.good()), "does not say by which key")
	public := x509.MarshalPKCS1PublicKey(w.Key("one").Public().(*rsa.PublicKey))
	w.refused(w.Sign(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: public, KeyID: "one"}}, w.good()), "unexpected signature algorithm")
	good := w.Token("one", w.good())
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"one"}`))
	w.refused(none+"."+parts[1]+".", "signature algorithm")
	other := strings.Split(w.Token("one", w.good("sub", "boss")), ".")
	w.refused(parts[0]+"."+other[1]+"."+parts[2], "verify signature")
	for _, junk := range []string{"", ".", "..", "a.b.c", good + "x", good + "." + good, "\xff" + good, strings.Repeat(".", MaxToken)} {
		w.refused(junk, "")
	}
	w.taken(good)
}

// TestKeys: a key that is not known is looked for, once a while; one that is taken back ends what was vouched for by it.
func TestKeys(t *testing.T) {
	w := newWorld(t, oidctest.New(t), "")
	w.AddRSA("two", 2048)
	w.Hide("two", true)
	one := w.taken(w.Token("one", w.good()))
	w.Hide("two", false)
	w.refused(w.Token("two", w.good()), "a moment ago")
	w.clock.Advance(time.Minute)
	two := w.taken(w.Token("two", w.good()))
	if !one.Holds(w.clock.Now()) || !two.Holds(w.clock.Now()) || w.Fetches() != 2 {
		t.Error("the keys of both are there", w.Fetches())
	}
	w.Hide("one", true)
	w.AddRSA("two", 2048) // another key of the same name
	if err := w.Refresh(t.Context(), nil, false); err != nil {
		t.Fatal(err)
	}
	if one.Holds(w.clock.Now()) || two.Holds(w.clock.Now()) {
		t.Error("keys that are gone still vouch")
	}
	three := w.taken(w.Token("two", w.good()))
	w.Down(true)
	if err := w.Refresh(t.Context(), []string{w.URL}, false); err == nil || !strings.Contains(err.Error(), "503") || !three.Holds(w.clock.Now()) {
		t.Error(err)
	}
	if err := w.Refresh(t.Context(), nil, true); err == nil || three.Holds(w.clock.Now()) {
		t.Error(err)
	}
	w.Down(false)
	w.clock.Advance(time.Minute)
	three = w.taken(w.Token("two", w.good()))
	w.clock.Advance(time.Hour)
	if three.Holds(w.clock.Now()) {
		t.Error("a token is good after its end")
	}
	if err := w.Refresh(t.Context(), []string{"https://other"}, false); err == nil {
		t.Error("an issuer that is none is asked")
	}
}

// TestManyAtOnce: many who need a key that nobody knows ask once.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t, oidctest.New(t), "")
	token := w.Token("one", w.good())
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := w.Verify(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := w.Fetches(); n != 1 {
		t.Errorf("%d fetches", n)
	}
}

// TestPublished: what an issuer publishes is used where it is a key by which tokens may be signed, and refused where it is too much.
func TestPublished(t *testing.T) {
	w := newWorld(t, oidctest.New(t), "")
	w.AddRSA("short", 1024)
	w.refused(w.Token("short", w.good()), "no key")
	public, err := jose.JSONWebKey{Key: w.Key("one").Public(), KeyID: "one"}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for body, why := range map[string]string{
		"no": "invalid character", "{}": "no keys", `{"keys": []}`: "no key",
		`{"keys": [` + strings.Repeat("1,", maxKeys) + `1]}`:                             "may have 100",
		strings.Repeat(" ", maxFetchBytes+1):                                             "too large",
		`{"keys": [{"kty": "oct", "kid": "one", "k": "c2VjcmV0"}]}`:                      "no key",
		`{"keys": [` + string(public) + `,` + string(public) + `]}`:                      "two keys",
		`{"keys": [` + strings.Replace(string(public), "{", `{"use":"enc",`, 1) + `]}`:   "no key",
		`{"keys": [` + strings.Replace(string(public), "{", `{"alg":"PS256",`, 1) + `]}`: "signed by RS256",
	} {
		w := newWorld(t, w.Issuer, "")
		w.Publish([]byte(body))
		w.refused(w.Token("one", w.good()), why)
	}
	w.Publish([]byte(`{"keys": [{"kty": "odd"}, 7, ` + string(public) + `]}`))
	w = newWorld(t, w.Issuer, "")
	w.taken(w.Token("one", w.good()))
	b := bson.Build()
	if err := w.AppendKeys(b, nil); err != nil {
		t.Fatal(err)
	}
	if text := b.Doc().String(); !strings.Contains(text, `keys: [ { kid: "one", kty: "RSA", n: "`) || strings.Contains(text, "odd") {
		t.Error(text)
	}
}

// TestTLS: an issuer whose certificate nobody vouches for is not believed.
func TestTLS(t *testing.T) {
	w := newWorld(t, oidctest.NewTLS(t), "")
	w.refused(w.Token("one", w.good()), "certificate")
	roots := x509.NewCertPool()
	roots.AddCert(w.Certificate())
	w.Issuers = New(w.providers, Options{Clock: w.clock, Log: slog.New(slog.DiscardHandler), Quiet: func() time.Duration { return 0 }, Roots: roots})
	w.taken(w.Token("one", w.good()))
}

// TestRun: keys are there before anybody needs them, and are fetched as often as the provider says.
func TestRun(t *testing.T) {
	w := newWorld(t, oidctest.New(t), ", JWKSPollSecs: 300")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	for n := 1; n <= 3; n++ {
		for w.clock.Waiting() == 0 {
			runtime.Gosched() // to the fetch, which goes over a socket
		}
		if got := w.Fetches(); got != n {
			t.Errorf("%d fetches, not %d", got, n)
		}
		w.clock.Advance(5 * time.Minute)
	}
	stop()
	running.Wait()
}

func TestProvider(t *testing.T) {
	provider := func(prefix, more string) string {
		return fmt.Sprintf(`{issuer: "https://%s.example.com", audience: "ebb", authNamePrefix: %q, authorizationClaim: "groups"%s}`, prefix, prefix, more)
	}
	a, b := provider("a", `, clientId: "c", matchPattern: "@a$"`), provider("b", `, clientId: "c", matchPattern: "@b$"`)
	work, any := provider("w", ", supportsHumanFlows: false"), provider("h", `, clientId: "c"`)
	matched := provider("m", `, supportsHumanFlows: false, matchPattern: "^svc-"`)
	for _, c := range []struct{ list, name, want string }{
		{"[" + any + "]", "", "h"}, {"[" + any + "]", "x", "h"}, {"[" + work + "]", "", ""}, {"[" + work + "]", "x", ""},
		{"[" + a + "," + b + "]", "x@a", "a"}, {"[" + a + "," + b + "]", "x@b", "b"}, {"[" + a + "," + b + "]", "x", ""}, {"[" + a + "," + b + "]", "", ""},
		{"[" + matched + "," + any + "]", "svc-1", "m"}, {"[" + matched + "," + any + "]", "ann", "h"}, {"[" + matched + "," + any + "]", "", "h"},
	} {
		p, err := New(parse(t, c.list), Options{}).Provider(c.name)
		got := ""
		if err == nil {
			got = p.AuthNamePrefix
		}
		if got != c.want {
			t.Errorf("%s: %q is of %q (%v), want %q", c.list, c.name, got, err, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	const base = `issuer: "https://a", audience: "x", authNamePrefix: "p"`
	const human, work = base + `, clientId: "c", authorizationClaim: "g"`, base + `, supportsHumanFlows: false, useAuthorizationClaim: false`
	parse(t, "[{"+human+"}, {"+strings.Replace(work, `"x"`, `"y"`, 1)+"}]")
	p := parse(t, "[{"+human+`, requestScopes: ["email"], logClaims: [], principalName: "email", JWKSPollSecs: 60.0}]`)[0]
	if p.PrincipalName != "email" || p.Poll != time.Minute || len(p.LogClaims) != 0 || p.RequestScopes[0] != "email" {
		t.Errorf("%+v", p)
	}
	for text, want := range map[string]string{
		"1":                             "provider 0 is no document",
		"{}":                            "issuer is missing",
		"{" + base + `, clientId: "c"}`: "authorizationClaim is missing",
		"{" + base + `, authorizationClaim: "g"}`:                                              "clientId is missing",
		"{" + human + ", odd: 1}":                                                              "no field odd",
		"{" + human + `, issuer: "https://b"}`:                                                 "given twice",
		"{" + human + `, principalName: ""}`:                                                   "principalName is missing",
		"{" + human + `, matchPattern: "("}`:                                                   "missing closing",
		"{" + human + `, matchPattern: 1}`:                                                     "matchPattern is no string",
		"{" + human + `, requestScopes: "a"}`:                                                  "requestScopes is no array",
		"{" + human + `, logClaims: [1]}`:                                                      "logClaims.0 is no string",
		"{" + human + `, supportsHumanFlows: 1}`:                                               "no boolean",
		"{" + human + `, JWKSPollSecs: -1}`:                                                    "from 0 to",
		"{" + human + `, JWKSPollSecs: NaN}`:                                                   "from 0 to",
		"{" + strings.Replace(human, `"p"`, `"p/q"`, 1) + "}":                                  "letters",
		"{" + strings.Replace(human, "https://a", "http://a", 1) + "}":                         "https://",
		"{" + strings.Replace(human, "https://a", "https://u:p@a", 1) + "}":                    "no address",
		"{" + human + "}, {" + human + "}":                                                     "two providers have",
		"{" + human + "}, {" + strings.Replace(human, `"x"`, `"y"`, 1) + "}":                   "needs a matchPattern",
		"{" + human + "}, {" + strings.Replace(work, `"x"`, `"y"`, 1) + `, JWKSPollSecs: 5}`:   "differ in JWKSPollSecs",
		"{" + human + "}, {" + strings.Replace(work, "https://a", "https://b", 1) + "}":        "two issuers",
		"{" + human + "}, {" + strings.Replace(work, `"x"`, `"y"`, 1) + `, matchPattern: "a"}`: "behind one without",
	} {
		if _, err := Parse(bson.MustParse("[" + text + "]").Doc()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	many := strings.TrimSuffix(strings.Repeat("{"+work+"},", maxProviders+1), ",")
	if _, err := Parse(bson.MustParse("[" + many + "]").Doc()); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Error(err)
	}
	for _, fine := range []string{"http://localhost:8080/realms/x", "http://127.0.0.1:1", "http://[::1]:1"} {
		parse(t, "[{"+strings.Replace(human, "https://a", fine, 1)+"}]")
	}
}

func FuzzToken(f *testing.F) {
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJSUzI1NiIsImtpZCI6Im9uZSJ9.eyJpc3MiOiJodHRwczovL2EiLCJhdWQiOiJ4In0.AA")
	p, err := Parse(bson.MustParse(`[{issuer: "https://127.0.0.1:1", audience: "x", authNamePrefix: "p", clientId: "c", authorizationClaim: "g"}]`).Doc())
	if err != nil {
		f.Fatal(err)
	}
	c := clock.NewFake(time.Unix(1_800_000_000, 0))
	s := New(p, Options{Clock: c, Log: slog.New(slog.DiscardHandler), Quiet: func() time.Duration { return time.Hour }})
	for _, i := range s.issuers {
		i.tried = c.Now() // asks nobody
	}
	f.Fuzz(func(t *testing.T, token string) {
		s.Claimed(token)
		if v, err := s.Verify(t.Context(), token); err == nil {
			t.Errorf("%+v", v)
		}
	})
}
