package command

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/patience"
	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// errAuthentication is what a client is told whose login has failed, whatever the reason.
func errAuthentication() error {
	return mongoerr.New(mongoerr.AuthenticationFailed, "Authentication failed.")
}

// manyUsers is the code of a login as a second user: in whose name would the connection do what it does?
const manyUsers mongoerr.Code = 5626701

// anotherUser is the code of a login as somebody else than the user whose token has expired on the connection.
const anotherUser mongoerr.Code = 7070100

// who is who logs in on the connection, for those who count failures.
func (c *Conn) who(name auth.Name) patience.Who {
	return patience.From(address(c.Remote), name.String())
}

// awaitTurn waits for as long as a login has to, before anybody looks at whether it succeeds.
func (s *Server) awaitTurn(ctx context.Context, who patience.Who) error {
	if s.patience.Wait(who, s.Clock.Now()) == 0 {
		return nil
	}
	leave, err := s.patience.Enter(ctx, who)
	if err != nil {
		return err
	}
	defer leave()
	wait := s.patience.Wait(who, s.Clock.Now()) // which others have changed while this one was in line
	if wait == 0 {
		return nil
	}
	if err := clock.Wait(ctx, s.Clock, wait); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// loginFailed takes note of a login that failed and why, and returns what the client is told of it. A guess counts whoever has hung up meanwhile: a
// client that only sends no more still gets its answers, and could guess as fast as it likes.
func (op *Op) loginFailed(l *login, why error) error {
	name := l.name()
	if op.Ctx.Err() != nil && !l.guessed {
		return context.Cause(op.Ctx)
	}
	if l.guessed || l.steps > 1 {
		op.patience.Failed(op.Conn.who(name), op.Clock.Now())
	}
	op.AccessLog.Info("Failed to authenticate", "client", op.Conn.Remote, "isSpeculative", l.speculative, "mechanism", l.mechanism,
		"user", name.Name, "db", name.DB, "error", why.Error())
	op.tellResult("authenticate", loginParam(name.Name, name.DB, l.mechanism), mongoerr.AuthenticationFailed, false)
	if op.Ctx.Err() != nil {
		return context.Cause(op.Ctx)
	}
	if op.Directory == nil && op.issuers == nil && op.hasNobody() { // directories and issuers of tokens have users of their own
		return mongoerr.New(mongoerr.AuthenticationFailed, "Authentication failed. This server has no users: connect without a name and a password, or make the first user (ebb user add)")
	}
	return errAuthentication()
}

// hasNobody says whether nobody can log in since there is nobody, where the client may know that.
func (op *Op) hasNobody() bool {
	if op.Users == nil || op.Authorization && !op.Conn.isLocal() {
		return false
	}
	users, err := op.Users.HasUsers(op.Ctx)
	return err == nil && !users
}

// loginSucceeded has the client be the user that it has shown to be.
func (op *Op) loginSucceeded(l *login) error {
	user, voucher := l.user()
	switch err := op.becomes(user); {
	case mongoerr.Is(err, manyUsers) || mongoerr.Is(err, anotherUser):
		return err
	case err != nil:
		return op.loginFailed(l, err)
	}
	op.Conn.voucher = voucher
	op.logins.of(l.mechanism).succeeded(l.speculative, user.IsInternal())
	op.patience.Succeeded(op.Conn.who(user.Name), op.Clock.Now())
	about := []any{"client", op.Conn.Remote, "isSpeculative", l.speculative, "isClusterMember", user.IsInternal(), "mechanism", l.mechanism,
		"user", user.Name.Name, "db", user.DB}
	if voucher != nil && len(voucher.Logged) > 0 {
		about = append(about, "claims", voucher.Logged)
	}
	op.AccessLog.Info("Successfully authenticated", about...)
	op.tellResult("authenticate", loginParam(user.Name.Name, user.DB, l.mechanism), 0, false)
	return nil
}

// becomes has the connection be the user's, if that may be used from where the client is, and the connection is not another's.
func (op *Op) becomes(user *auth.User) error {
	if !op.Conn.allows(user) {
		return errRestricted
	}
	if was := op.Conn.user.Load(); was != nil && was.Name != user.Name {
		return mongoerr.New(manyUsers, "Each client connection may only be authenticated once. Previously authenticated as: %s", was.Name)
	}
	if was := op.Conn.expired; was.Name != "" && was != user.Name {
		return mongoerr.New(anotherUser, "Only same user is permitted to re-auth to an expired session. Expired user is %s", was)
	}
	op.Conn.become(user)
	return nil
}

// address is the IP address in "address:port", the zero one where there is none.
func address(hostPort string) netip.Addr {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return netip.Addr{}
	}
	a, _ := netip.ParseAddr(host)
	return a
}

// allows says whether the user may be used over the connection.
func (c *Conn) allows(u *auth.User) bool {
	return len(u.Restrictions) == 0 || u.AllowedFrom(address(c.Remote), address(c.Local))
}

// offers says whether somebody may log in by the mechanism.
func (s *Server) offers(mechanism string) bool { return slices.Contains(s.mechanisms(), mechanism) }

// mechanisms are those by which somebody may log in.
func (s *Server) mechanisms() (names []string) {
	for it := s.Params.Lookup(mechanismsName).Get().Doc().Iter(); it.Next(); {
		names = append(names, it.Value().Str())
	}
	return names
}

// appendSupportedMechs tells hello's client by which mechanisms a user may log in; nothing of one that is not there.
func (op *Op) appendSupportedMechs(b *bson.Builder, asked bson.Value) error {
	name, err := userAsked(asked)
	if err != nil || name == nil || op.Users == nil {
		return err
	}
	op.logins.supportedMechs.Add(1)
	user, err := op.findUser(op.Ctx, *name)
	if err != nil {
		if mongoerr.Is(err, mongoerr.UserNotFound) {
			op.AccessLog.Debug("Supported SASL mechanisms requested for unknown user", "user", name.String())
			return nil
		}
		return err
	}
	var can []string
	for _, m := range scram.Mechanisms() {
		if _, has := scram.Read(m, user.Credentials); has && op.offers(m) {
			can = append(can, m)
		}
	}
	if name.DB == externalDB && op.offers(x509Mechanism) {
		can = append(can, x509Mechanism)
	}
	if name.DB == externalDB && op.Directory != nil && op.offers(plainMechanism) {
		can = append(can, plainMechanism)
	}
	if name.DB == externalDB && op.issuers != nil && op.offers(oidcMechanism) {
		can = append(can, oidcMechanism)
	}
	b.Strings("saslSupportedMechs", can)
	return nil
}

// userAsked reads the user that saslSupportedMechs asks about: "db.user", or {db: …, user: …}.
func userAsked(v bson.Value) (*auth.Name, error) {
	switch v.Type {
	case bson.TypeMissing:
		return nil, nil
	case bson.TypeString:
		db, user, found := strings.Cut(strings.Clone(v.Str()), ".")
		if !found {
			return nil, mongoerr.New(mongoerr.BadValue, "UserName must contain a '.' separated database.user pair")
		}
		return &auth.Name{Name: user, DB: db}, nil
	case bson.TypeObject:
		for _, field := range [2]string{"user", "db"} {
			if v.Doc().Lookup(field).Type != bson.TypeString {
				return nil, mongoerr.New(mongoerr.BadValue, "UserName must contain a field named: %s", field)
			}
		}
		return &auth.Name{Name: strings.Clone(v.Doc().Lookup("user").Str()), DB: strings.Clone(v.Doc().Lookup("db").Str())}, nil
	}
	return nil, mongoerr.New(mongoerr.TypeMismatch, "UserName must be either a string or an object")
}

// findUser is a user who may log in: a stored one, or the one that members are to one another.
func (s *Server) findUser(ctx context.Context, name auth.Name) (*auth.User, error) {
	if internal := auth.Internal(); name == internal.Name {
		if s.ClusterKeys == nil || !s.ClusterAuth.TakesKey() {
			return nil, mongoerr.New(mongoerr.UserNotFound, "Could not find user \"%s\" for db \"%s\"", name.Name, name.DB)
		}
		internal.Credentials = s.ClusterKeys[0]
		return internal, nil
	}
	if s.Users == nil {
		return nil, mongoerr.New(mongoerr.UserNotFound, "Could not find user \"%s\" for db \"%s\"", name.Name, name.DB)
	}
	return s.Users.Find(ctx, name)
}

// maxHashing is how many passwords are hashed at once: each takes a processor for milliseconds, and nobody can stop it.
const maxHashing = 2

// hash hashes a password, when there is a place for that. Who hangs up while there is none has nothing hashed.
func (s *Server) hash(ctx context.Context, password func() error) error {
	select {
	case s.hashing <- struct{}{}:
	default:
		select {
		case s.hashing <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-s.hashing }()
	return password()
}
