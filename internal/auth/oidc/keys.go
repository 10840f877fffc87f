package oidc

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/ebbdb/ebb/internal/clock"
)

const (
	// maxKeys is how many keys an issuer may have.
	maxKeys = 100
	// maxFetchBytes is how long an answer of an issuer may be.
	maxFetchBytes = 1 << 20
	// maxFetchTime is how long a fetch of keys may take, in real time.
	maxFetchTime = 10 * time.Second
	// minRSABits and maxRSABits are how long keys of RSA are.
	minRSABits, maxRSABits = 2048, 8192
	// maxErrorBytes is how much of an error is told, since it may hold what the issuer or the token says.
	maxErrorBytes = 300
)

// signatures are the algorithms by which tokens may be signed: none by which who checks could also sign.
func signatures() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}
}

// key is one that an issuer signs with, and a digest by which it is known again.
type key struct {
	jose.JSONWebKey
	print [sha256.Size]byte
}

// issuer is one that tokens come from, and its keys as they were fetched last. Keys that a fetch does not find any more are gone at once,
// and with them what was vouched for by them.
type issuer struct {
	url    string
	poll   time.Duration
	client *http.Client
	clock  clock.Clock
	log    *slog.Logger
	// quiet is how long after one fetch the next may be, where nobody but a token asks for it.
	quiet func() time.Duration

	keys atomic.Pointer[map[string]key] // by kid; never nil
	// turn is full while somebody fetches, who may also look at tried, which is when the last fetch began.
	turn  chan struct{}
	tried time.Time
}

func newIssuer(p *Provider, o Options, client *http.Client) *issuer {
	i := &issuer{url: p.Issuer, poll: p.Poll, client: client, clock: o.Clock, log: o.Log, quiet: o.Quiet, turn: make(chan struct{}, 1)}
	i.keys.Store(&map[string]key{})
	return i
}

// has says whether the key is still one of the issuer's.
func (i *issuer) has(k key) bool {
	now, ok := (*i.keys.Load())[k.KeyID]
	return ok && now.print == k.print
}

// find is the key of that name. One that is not known is looked for at the issuer, unless somebody has just asked there.
func (i *issuer) find(ctx context.Context, kid string) (key, error) {
	if k, ok := (*i.keys.Load())[kid]; ok {
		return k, nil
	}
	if err := i.take(ctx); err != nil {
		return key{}, err
	}
	defer i.release()
	if k, ok := (*i.keys.Load())[kid]; ok { // somebody has fetched it meanwhile
		return k, nil
	}
	if !i.tried.IsZero() && clock.Since(i.clock, i.tried) < i.quiet() {
		return key{}, fmt.Errorf("the issuer has no key %.100q, and was asked a moment ago", kid)
	}
	// Who hangs up ends no fetch: the next one may not be for a while.
	if err := i.fetch(context.WithoutCancel(ctx)); err != nil {
		return key{}, err
	}
	if k, ok := (*i.keys.Load())[kid]; ok {
		return k, nil
	}
	return key{}, fmt.Errorf("the issuer has no key %.100q", kid)
}

// refresh fetches the keys. Where that fails they stay as they are, or all are gone.
func (i *issuer) refresh(ctx context.Context, flush bool) error {
	if err := i.take(ctx); err != nil {
		return err
	}
	defer i.release()
	err := i.fetch(ctx)
	if err != nil && flush && ctx.Err() == nil {
		i.keys.Store(&map[string]key{})
	}
	return err
}

func (i *issuer) take(ctx context.Context) error {
	select {
	case i.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (i *issuer) release() { <-i.turn }

// fetch gets the keys. It is called by who has the turn.
func (i *issuer) fetch(ctx context.Context) error {
	i.tried = i.clock.Now()
	ctx, cancel := context.WithTimeout(ctx, maxFetchTime)
	defer cancel()
	keys, err := i.published(ctx)
	if err != nil {
		err = fmt.Errorf("fetch the keys of %.200s: %w", i.url, short(err))
		if !errors.Is(ctx.Err(), context.Canceled) { // else nobody waits for it any more
			i.log.Warn("Failed to refresh keys for IdP", "issuer", i.url, "error", err.Error())
		}
		return err
	}
	i.keys.Store(&keys)
	return nil
}

// published is what the issuer tells of its keys.
func (i *issuer) published(ctx context.Context) (map[string]key, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.url)
	if err != nil {
		return nil, err
	}
	var about struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&about); err != nil {
		return nil, err
	}
	if err := checkURL(about.Keys); err != nil {
		return nil, err
	}
	body, err := i.get(ctx, about.Keys)
	if err != nil {
		return nil, err
	}
	return parseKeys(body)
}

func (i *issuer) get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := i.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// parseKeys reads a set of keys. Those that sign no tokens of ours are passed over.
func parseKeys(body []byte) (map[string]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, err
	}
	if set.Keys == nil {
		return nil, errors.New("the answer has no keys")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the answer has %d keys, and may have %d", len(set.Keys), maxKeys)
	}
	keys := map[string]key{}
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(raw) != nil || !signs(&k) {
			continue
		}
		if _, twice := keys[k.KeyID]; twice {
			return nil, fmt.Errorf("two keys are called %.100q", k.KeyID)
		}
		sum, err := k.Thumbprint(crypto.SHA256)
		if err != nil {
			continue
		}
		keys[k.KeyID] = key{k, [sha256.Size]byte(sum)}
	}
	return keys, nil
}

// signs says whether a token may be signed by the key.
func signs(k *jose.JSONWebKey) bool {
	if r, ok := k.Key.(*rsa.PublicKey); ok && (r.N.BitLen() < minRSABits || r.N.BitLen() > maxRSABits) {
		return false
	}
	return k.KeyID != "" && (k.Use == "" || k.Use == "sig") && k.IsPublic() && k.Valid()
}

// client is what issuers are asked by: it follows nobody to another place, and reads no endless answers.
func client(o Options) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = tlsConfig(o.Roots)
	t.MaxResponseHeaderBytes = maxFetchBytes
	t.DisableKeepAlives = true // between two questions are hours
	return &http.Client{Timeout: maxFetchTime, Transport: limited{t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// limited has answers fail that are too long.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxFetchBytes)
	}
	return answer, err
}

// short is an error of which not more is told than somebody reads.
func short(err error) error {
	if text := err.Error(); len(text) > maxErrorBytes {
		return fmt.Errorf("%q …", text[:maxErrorBytes])
	}
	return err
}
