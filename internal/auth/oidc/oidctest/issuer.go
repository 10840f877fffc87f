// Package oidctest is an issuer of OpenID Connect for tests: it publishes its keys and signs tokens. It must not know who takes them.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// Issuer is a server on this machine.
type Issuer struct {
	*httptest.Server
	t  testing.TB
	mu struct {
		sync.Mutex // guards the keys, by their names, and what is said of them
		keys       map[string]crypto.Signer
		hidden     map[string]bool
		down       bool
		fetches    int
		published  []byte
		letIn      string // the token of a person who has logged in; "" for nobody
	}
}

// New starts one over plain HTTP, with a key of RSA that is called "one".
func New(t testing.TB) *Issuer { return start(t, httptest.NewServer) }

// NewTLS starts one over TLS, whose certificate Server.Certificate is.
func NewTLS(t testing.TB) *Issuer { return start(t, httptest.NewTLSServer) }

func start(t testing.TB, serve func(http.Handler) *httptest.Server) *Issuer {
	t.Helper()
	i := &Issuer{t: t}
	i.mu.keys, i.mu.hidden = map[string]crypto.Signer{}, map[string]bool{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.about)
	mux.HandleFunc("GET /keys", i.publish)
	mux.HandleFunc("POST /device", i.device)
	mux.HandleFunc("POST /token", i.grant)
	i.Server = serve(mux)
	t.Cleanup(i.Close)
	i.AddRSA("one", 2048)
	return i
}

func (i *Issuer) about(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize",
		"token_endpoint": i.URL + "/token", "device_authorization_endpoint": i.URL + "/device",
		"grant_types_supported": []string{"urn:ietf:params:oauth:grant-type:device_code"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256", "ES256"}})
}

func (i *Issuer) publish(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.fetches++
	if i.mu.published != nil {
		_, _ = w.Write(i.mu.published)
		return
	}
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, kid := range slices.Sorted(maps.Keys(i.mu.keys)) {
		if !i.mu.hidden[kid] {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: i.mu.keys[kid].Public(), KeyID: kid, Use: "sig"})
		}
	}
	_ = json.NewEncoder(w).Encode(set)
}

// device begins a login with the help of another device (RFC 8628).
func (i *Issuer) device(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"device_code": "device", "user_code": "USER", "verification_uri": i.URL + "/verify", "expires_in": 600, "interval": 1})
}

// grant gives who has begun so the token of whom LetIn has let in.
func (i *Issuer) grant(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.letIn == "" || r.FormValue("device_code") != "device" {
		answer(w, http.StatusBadRequest, map[string]any{"error": "authorization_pending"})
		return
	}
	answer(w, http.StatusOK, map[string]any{"access_token": i.mu.letIn, "token_type": "Bearer", "expires_in": 3600})
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// LetIn has a person have logged in, who gets the token.
func (i *Issuer) LetIn(token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.letIn = token
}

// AddRSA adds a key of RSA, in the place of one of its name.
func (i *Issuer) AddRSA(kid string, bits int) {
	i.t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		i.t.Fatal(err)
	}
	i.add(kid, k)
}

// AddEC adds a key of an elliptic curve.
func (i *Issuer) AddEC(kid string) {
	i.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.add(kid, k)
}

func (i *Issuer) add(kid string, k crypto.Signer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.keys[kid] = k
}

// Hide publishes a key no more, or again; tokens can be signed with it either way.
func (i *Issuer) Hide(kid string, hidden bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.hidden[kid] = hidden
}

// Down has the issuer answer nothing but errors, or be there again.
func (i *Issuer) Down(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.down = down
}

// Publish has the issuer say something else where its keys are asked for.
func (i *Issuer) Publish(body []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.published = body
}

// Fetches is how often the keys were asked for.
func (i *Issuer) Fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.fetches
}

// Token signs claims with a key. iss is the issuer where the claims do not say it.
func (i *Issuer) Token(kid string, claims map[string]any) string {
	i.t.Helper()
	i.mu.Lock()
	k := i.mu.keys[kid]
	i.mu.Unlock()
	alg := jose.RS256
	if _, ec := k.(*ecdsa.PrivateKey); ec {
		alg = jose.ES256
	}
	return i.Sign(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: k, KeyID: kid}}, claims)
}

// Sign signs claims with a key that may be anybody's.
func (i *Issuer) Sign(with jose.SigningKey, claims map[string]any) string {
	i.t.Helper()
	all := map[string]any{"iss": i.URL}
	maps.Copy(all, claims)
	body, err := json.Marshal(all)
	if err != nil {
		i.t.Fatal(err)
	}
	signer, err := jose.NewSigner(with, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

// Key is a private key of the issuer.
func (i *Issuer) Key(kid string) crypto.Signer {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.keys[kid]
}
