package certificate

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

const (
	// lookEvery is how often the files are looked at, for what somebody has replaced.
	lookEvery = 30 * time.Second
	// warnEvery is how often is warned of a certificate that ends soon, and soon how long before.
	warnEvery = 24 * time.Hour
	soon      = 30 * 24 * time.Hour
)

// Store holds the certificates that are in force. They change as a whole: by Rotate, or when Watch finds that their files have.
// A connection keeps to those that it has begun with.
type Store struct {
	opts  Options
	clock clock.Clock
	log   *slog.Logger
	now   atomic.Pointer[Set]
	// members are the attributes by which others are members beside those whose are the server's own; nil for none.
	members atomic.Pointer[[]attribute]
	// turn is full while the files are read, which one does at a time. seen is what they were when they were read last, whether or not
	// that was any good; it belongs to whose turn it is.
	turn chan struct{}
	seen [sha256.Size]byte
}

// Set is what is in force at one time.
type Set struct {
	// Config is for connections that clients open.
	Config *tls.Config
	// Subject is the server's name by its certificate, which is good until NotAfter.
	Subject  string
	NotAfter time.Time

	opts      *Options
	members   *atomic.Pointer[[]attribute] // see SetMemberName
	own       name
	authority *authority
	// shown is what other members are shown when they are called, whose certificates are held against called.
	shown  tls.Certificate
	called *authority
	clock  clock.Clock
}

// Outgoing is for a connection to another member at a host. Where it withholds the server's certificate, that member must do without.
func (set *Set) Outgoing(host string, withholds bool) *tls.Config {
	least, most := set.opts.versions()
	c := &tls.Config{
		ServerName: host, MinVersion: least, MaxVersion: most, Time: set.clock.Now,
		// verifyCalled says what is good: for crypto/tls a certificate that names its host in its subject alone is not.
		InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error { return set.verifyCalled(s.PeerCertificates, host) },
	}
	if !withholds {
		c.Certificates = []tls.Certificate{set.shown}
	}
	return c
}

// verifyCalled says whether the certificates of a member that was called at a host, its own first, are good now.
func (set *Set) verifyCalled(chain []*x509.Certificate, host string) error {
	switch {
	case set.opts.AllowInvalid:
		return nil
	case len(chain) == 0:
		return &RefusedError{"no SSL certificate provided by peer; connection rejected"}
	}
	if err := set.called.verify(chain, set.clock.Now(), x509.ExtKeyUsageServerAuth); err != nil || set.opts.AllowInvalidHosts {
		return err
	}
	return checkHost(chain[0], host)
}

// Open reads all that there is. What cannot be used is an error, in mongod's words.
func Open(o Options, c clock.Clock, log *slog.Logger) (*Store, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := &Store{opts: o, clock: c, log: log, turn: make(chan struct{}, 1)}
	s.seen = s.contents()
	set, err := s.read()
	if err != nil {
		return nil, err
	}
	s.now.Store(set)
	return s, nil
}

// Set is what is in force now.
func (s *Store) Set() *Set { return s.now.Load() }

// read makes a Set of the files.
func (s *Store) read() (*Set, error) {
	o := &s.opts
	own, err := readKeyFile(o.KeyFile, o.KeyPassword)
	if err != nil {
		return nil, fmt.Errorf("InvalidSSLConfiguration: Can not set up PEM key file. %w", err)
	}
	now := s.clock.Now()
	if now.Before(own.Leaf.NotBefore) || now.After(own.Leaf.NotAfter) {
		return nil, errors.New("InvalidSSLConfiguration: The provided SSL certificate is expired or not yet valid.")
	}
	set := &Set{NotAfter: own.Leaf.NotAfter, opts: o, members: &s.members, clock: s.clock, shown: own}
	if o.ClusterFile != "" {
		if set.shown, err = readKeyFile(o.ClusterFile, o.ClusterPassword); err != nil {
			return nil, fmt.Errorf("InvalidSSLConfiguration: Can not set up ssl clusterFile. %w", err)
		}
	}
	if set.own, err = parseName(own.Leaf.RawSubject); err != nil {
		return nil, fmt.Errorf("InvalidSSLConfiguration: %w", err)
	}
	set.Subject = set.own.String()
	if err := set.readAuthorities(); err != nil {
		return nil, fmt.Errorf("InvalidSSLConfiguration: %w", err)
	}
	least, most := o.versions()
	set.Config = &tls.Config{
		Certificates: []tls.Certificate{own}, MinVersion: least, MaxVersion: most, Time: s.clock.Now,
		// Who comes with no certificate, and with what, is for verify to say, in MongoDB's words. It is asked when a session is resumed, too.
		ClientAuth: tls.RequestClientCert, VerifyConnection: set.verify,
		// Records that begin small save a browser a moment, and cost a server that writes whole replies.
		DynamicRecordSizingDisabled: true,
	}
	return set, nil
}

func (set *Set) readAuthorities() (err error) {
	o := set.opts
	file := o.CAFile
	if o.ClusterCAFile != "" {
		if set.called, err = readAuthority(file); err != nil {
			return err
		}
		file = o.ClusterCAFile
	}
	if set.authority, err = readAuthority(file); err != nil {
		return err
	}
	if set.called == nil {
		set.called = set.authority
	}
	if o.CRLFile != "" {
		if set.authority.revoked, err = readRevocations(o.CRLFile); err != nil {
			return fmt.Errorf("Can not set up CRL file. %w", err)
		}
		set.called.revoked = set.authority.revoked
	}
	return nil
}

// read says whose a certificate is.
func (set *Set) read(c *x509.Certificate) (*Peer, error) {
	return readPeer(c, func(n name) bool {
		return set.opts.Members.isMember(n, set.own) || set.isOverride(n)
	}, set.opts.Members.ExtensionValue)
}

// isOverride says whether a name is a member's by SetMemberName.
func (set *Set) isOverride(n name) bool {
	also := set.members.Load()
	return also != nil && slices.Equal(*also, membership(n.all()))
}

// IsMemberName says whether a certificate of that name, which is in words, is a member's. Where members have a value in an extension no
// name is. A Store that is nil knows none.
func (s *Store) IsMemberName(dn string) bool {
	if s == nil || s.opts.Members.ExtensionValue != "" {
		return false
	}
	all, err := readName(dn)
	if err != nil {
		return false
	}
	set, n := s.Set(), name{all}
	return set.opts.Members.isMember(n, set.own) || set.isOverride(n)
}

// SetMemberName has certificates be those of members, too, that have the O, OU and DC of a name in words; "" for none. It is for the time in
// which members change theirs. A Store that is nil takes any name.
func (s *Store) SetMemberName(dn string) error {
	var also []attribute
	if dn != "" {
		all, err := readName(dn)
		if err != nil {
			return err
		}
		if also = membership(all); len(also) == 0 {
			return fmt.Errorf("Cluster Member DN Override must contain at least one of: O, OU, or DC: %q", dn)
		}
	}
	switch {
	case s == nil:
	case also == nil:
		s.members.Store(nil)
	default:
		s.members.Store(&also)
	}
	return nil
}

// verify is asked about each connection before its handshake ends.
func (set *Set) verify(c tls.ConnectionState) error {
	if len(c.PeerCertificates) == 0 {
		if set.opts.AllowNone {
			return nil
		}
		return &RefusedError{"no SSL certificate provided by peer; connection rejected"}
	}
	if set.opts.AllowInvalid {
		return nil
	}
	_, err := set.peer(c)
	return err
}

func (set *Set) peer(c tls.ConnectionState) (*Peer, error) {
	if err := set.authority.verify(c.PeerCertificates, set.clock.Now(), x509.ExtKeyUsageClientAuth); err != nil {
		return nil, err
	}
	p, err := set.read(c.PeerCertificates[0])
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	return p, nil
}

// Peer is who the other side of a connection is, whose handshake has ended: nil where its certificate does not say, and then why, if it has
// one that is no good.
func (set *Set) Peer(c tls.ConnectionState) (*Peer, error) {
	if len(c.PeerCertificates) == 0 {
		return nil, nil
	}
	if set.opts.AllowInvalid {
		return set.peer(c)
	}
	p, err := set.read(c.PeerCertificates[0]) // verify has seen it
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	return p, nil
}

// EndsSoon says whether the peer's certificate is good for less than d from now on.
func (p *Peer) EndsSoon(now time.Time, d time.Duration) bool { return d > 0 && p.NotAfter.Sub(now) < d }

// Rotate reads the files again, and puts what is in them in force for the connections that come. What cannot be used changes nothing.
func (s *Store) Rotate(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	return s.replace()
}

// replace does that. Its caller has the turn.
func (s *Store) replace() error {
	s.seen = s.contents()
	set, err := s.read()
	if err != nil {
		return err
	}
	s.now.Store(set)
	s.log.Info("Successfully rotated X509 certificates", "subject", set.Subject, "notAfter", set.NotAfter.UTC().Format(time.RFC3339))
	return nil
}

// contents tells whether a file has changed. One that cannot be read is as if it were empty.
func (s *Store) contents() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, name := range s.opts.files() {
		b, err := read(name, maxListBytes)
		if err != nil {
			b = []byte(err.Error())
		}
		fmt.Fprintf(h, "%d ", len(b))
		_, _ = h.Write(b)
	}
	h.Sum(sum[:0])
	return sum
}

// Watch looks at the files until ctx ends, and warns of a certificate that ends soon.
func (s *Store) Watch(ctx context.Context) {
	warned := s.clock.Now()
	for clock.Wait(ctx, s.clock, lookEvery) == nil {
		s.look(ctx)
		if now := s.clock.Now(); now.Sub(warned) >= warnEvery {
			warned = now
			s.WarnOfEnd(s.log)
		}
	}
}

// look rotates when a file has changed since it was read last.
func (s *Store) look(ctx context.Context) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-s.turn }()
	if s.contents() == s.seen {
		return
	}
	if err := s.replace(); err != nil {
		s.log.Error("Certificates have changed and cannot be used; those that were read before stay in force", "error", err.Error())
	}
}

// WarnOfEnd tells log of a certificate that ends soon.
func (s *Store) WarnOfEnd(log *slog.Logger) {
	left := s.Set().NotAfter.Sub(s.clock.Now())
	ends := s.Set().NotAfter.UTC().Format(time.RFC3339)
	switch {
	case left <= 0:
		log.Warn("Server certificate has expired", "certExpiration", ends)
	case left < soon:
		log.Warn("Server certificate will expire soon", "certExpiration", ends, "validDays", int(left/(24*time.Hour)))
	}
}
