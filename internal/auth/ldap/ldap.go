// Package ldap asks a directory whether a password is a user's, and which roles the user has. It keeps nothing of either. What users are
// called in the directory is said by a Mapping.
package ldap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-ldap/ldap/v3"
)

const (
	// maxAtOnce is how many logins talk to the directory at one time; others wait for their turn.
	maxAtOnce = 64
	// maxEntries is how many entries an answer may have.
	maxEntries = 1000
	// maxValues is how many roles a user can have by the directory.
	maxValues = 10_000
)

// Options are how a directory is reached, and what is asked of it.
type Options struct {
	// Servers are "host" or "host:port". Each is tried in turn where those before cannot be reached.
	Servers []string
	// Plain goes without TLS.
	Plain bool
	// Timeout bounds a login: all that is asked of the directory for it.
	Timeout time.Duration
	// Mapping says what users are called; "" is that they are called what they say.
	Mapping string
	// QueryUser is who asks, with QueryPassword; "" is nobody in particular.
	QueryUser, QueryPassword string
	// QueryTemplate asks for a user's roles; "" is that the directory does not tell them.
	QueryTemplate string
	// Roots are the authorities of the servers' certificates; nil are the machine's.
	Roots *x509.CertPool
}

// The reasons for which a password is not taken. They hold nothing of it.
var (
	ErrPassword = errors.New("the directory does not take the password")
	ErrNoUser   = errors.New("the directory does not know the user")
)

// Directory is where users are looked up. It is used by many at once.
type Directory struct {
	opts    Options
	mapping mapping
	roles   *search
	turns   chan struct{}
}

// New checks the options. It does not talk to the directory.
func New(o Options) (*Directory, error) {
	if len(o.Servers) == 0 {
		return nil, errors.New("security.ldap.servers names no server")
	}
	d := &Directory{opts: o, turns: make(chan struct{}, maxAtOnce)}
	var err error
	if d.mapping, err = parseMapping(o.Mapping); err != nil {
		return nil, err
	}
	if o.QueryTemplate != "" {
		if d.roles, err = parseSearch(o.QueryTemplate); err != nil {
			return nil, fmt.Errorf("security.ldap.authz.queryTemplate: %w", err)
		}
	}
	return d, nil
}

// Login is nil where the password is the user's. known says that the directory tells the user's roles, which are then their names.
func (d *Directory) Login(ctx context.Context, user, password string) (roles []string, known bool, err error) {
	if user == "" || password == "" { // a directory takes an empty password for nobody's, and says yes
		return nil, false, ErrPassword
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.Timeout)
	defer cancel()
	select {
	case d.turns <- struct{}{}:
		defer func() { <-d.turns }()
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	c, err := d.dial(ctx)
	if err != nil {
		return nil, false, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	roles, known, err = d.login(c, user, password)
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	return roles, known, err
}

func (d *Directory) login(c *ldap.Conn, user, password string) ([]string, bool, error) {
	if d.mapping.asks() {
		if err := d.bindToAsk(c); err != nil {
			return nil, false, err
		}
	}
	dn, err := d.mapping.name(c, user)
	if err != nil {
		return nil, false, err
	}
	if dn == "" { // a directory takes it for nobody, whatever the password
		return nil, false, ErrNoUser
	}
	if err := c.Bind(dn, password); err != nil {
		return nil, false, refused(err)
	}
	if d.roles == nil {
		return nil, false, nil
	}
	if d.opts.QueryUser != "" { // else the user asks
		if err := d.bindToAsk(c); err != nil {
			return nil, false, err
		}
	}
	roles, err := d.roles.run(c, func(escape func(string) string) []string {
		return []string{"{USER}", escape(dn), "{PROVIDED_USER}", escape(user)}
	})
	return roles, true, err
}

func (d *Directory) bindToAsk(c *ldap.Conn) error {
	var err error
	if d.opts.QueryUser == "" {
		err = c.UnauthenticatedBind("")
	} else {
		err = c.Bind(d.opts.QueryUser, d.opts.QueryPassword)
	}
	if err != nil {
		return fmt.Errorf("the directory does not take security.ldap.bind.queryUser: %w", code(err))
	}
	return nil
}

// dial reaches a server.
func (d *Directory) dial(ctx context.Context) (*ldap.Conn, error) {
	var all error
	for _, server := range d.opts.Servers {
		c, err := d.dialOne(ctx, server)
		if err == nil {
			return c, nil
		}
		all = errors.Join(all, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("the directory cannot be reached: %w", all)
}

func (d *Directory) dialOne(ctx context.Context, server string) (*ldap.Conn, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		host, port = server, ldap.DefaultLdapsPort
		if d.opts.Plain {
			port = ldap.DefaultLdapPort
		}
	}
	address := net.JoinHostPort(host, port)
	var raw net.Conn
	if d.opts.Plain {
		raw, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	} else {
		raw, err = (&tls.Dialer{Config: &tls.Config{ServerName: host, RootCAs: d.opts.Roots, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	c := ldap.NewConn(raw, !d.opts.Plain) // has no time of its own: Login closes it when its time is over
	c.Start()
	return c, nil
}

// refused is why a bind as the user failed.
func refused(err error) error {
	if ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultNoSuchObject, ldap.LDAPResultInvalidDNSyntax,
		ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultUnwillingToPerform, ldap.LDAPResultInsufficientAccessRights) {
		return ErrPassword
	}
	return code(err)
}

// code is an error of the directory without the directory's own words, which may tell of what was sent.
func code(err error) error {
	var e *ldap.Error
	if errors.As(err, &e) {
		return fmt.Errorf("LDAP result %d (%s)", e.ResultCode, ldap.LDAPResultCodeMap[e.ResultCode])
	}
	return err
}
