package command

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/oidc"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// plainMechanism is the login by a password that a directory knows.
const plainMechanism = "PLAIN"

// Directory knows the passwords of users of $external.
type Directory interface {
	// Login is nil where the password is the user's. known says that the directory tells the names of the user's roles, too.
	Login(ctx context.Context, user, password string) (roles []string, known bool, err error)
}

// errPlain is why a login by PLAIN fails before anybody has looked at the password.
var errPlain = errors.New("the message is none of PLAIN for a user of $external")

// plainConversation logs a client in by a name and a password in one message.
type plainConversation struct {
	who      auth.Name
	password string // "" where there is nothing to ask the directory
	found    *auth.User
}

func newPlainConversation(r saslRequest) *plainConversation {
	c := &plainConversation{who: auth.Name{DB: r.db}}
	parts := strings.Split(string(r.payload.bytes), "\x00")
	if len(parts) != 3 || !utf8.Valid(r.payload.bytes) {
		return c
	}
	actsFor, user, password := parts[0], parts[1], parts[2]
	c.who.Name = user
	if user != "" && (actsFor == "" || actsFor == user) && r.db == externalDB {
		c.password = password
	}
	return c
}

func (c *plainConversation) name() auth.Name                    { return c.who }
func (c *plainConversation) user() (*auth.User, *oidc.Voucher)  { return c.found, nil }
func (c *plainConversation) proves(_ *Op, n int, _ []byte) bool { return n == 1 }

func (c *plainConversation) step(op *Op, _ []byte) (answer []byte, done bool, err error) {
	password := c.password
	c.password = ""
	if password == "" {
		return nil, false, errPlain
	}
	roles, known, err := op.Directory.Login(op.Ctx, c.who.Name, password)
	if err != nil {
		return nil, false, err
	}
	if c.found, err = op.externalUser(c.who, roles, known); err != nil {
		return nil, false, err
	}
	return nil, true, nil
}

// externalUser is the user whom somebody else has known, a directory or an issuer of tokens: with the roles that it tells, or as it is stored.
func (op *Op) externalUser(name auth.Name, roles []string, known bool) (*auth.User, error) {
	if op.Users == nil {
		return nil, mongoerr.New(mongoerr.UserNotFound, "Could not find user \"%s\" for db \"%s\"", name.Name, name.DB)
	}
	if !known {
		return op.Users.Find(op.Ctx, name)
	}
	names := make([]auth.Name, 0, len(roles))
	for _, r := range roles {
		names = append(names, auth.Name{Name: r, DB: "admin"})
	}
	return op.Users.Vouched(op.Ctx, name, names)
}
