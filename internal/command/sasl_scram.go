package command

import (
	"errors"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/oidc"
	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Why a login fails, for the log.
var (
	errNoUser       = errors.New("UserNotFound: there is no such user")
	errNoCredential = errors.New("the user has no credentials for the mechanism")
	errRestricted   = errors.New("AuthenticationRestrictionUnmet: the user may not be used from here")
)

// scramConversation logs a client in by name and password. A user who is not there has a conversation like others: nobody can tell by it.
type scramConversation struct {
	mechanism, db string
	speculative   bool
	talk          *scram.Conversation
	found         *auth.User
	missing       error // why there is no user
	op            *Op   // of the step under way
}

func newScramConversation(r saslRequest) *scramConversation {
	c := &scramConversation{mechanism: r.mechanism, db: r.db, speculative: r.speculative}
	c.talk = scram.NewConversation(r.mechanism, c.lookup)
	return c
}

func (c *scramConversation) name() auth.Name                   { return auth.Name{Name: c.talk.User(), DB: c.db} }
func (c *scramConversation) user() (*auth.User, *oidc.Voucher) { return c.found, nil }

func (c *scramConversation) proves(_ *Op, n int, _ []byte) bool { return n > 1 }

// lookup finds what the client is held against. It does the same for every name.
func (c *scramConversation) lookup(user string) (scram.Credentials, error) {
	name := auth.Name{Name: user, DB: c.db}
	decoy := scram.Decoy(c.mechanism, c.op.decoySecret[:], name.String(), c.op.iterations(c.mechanism))
	found, err := c.op.findUser(c.op.Ctx, name)
	switch {
	case mongoerr.Is(err, mongoerr.UserNotFound):
		found, c.missing = &auth.User{}, errNoUser
	case err != nil:
		return decoy, err
	default:
		c.missing = errNoCredential
	}
	real, ok := scram.Read(c.mechanism, found.Credentials)
	if !ok {
		return decoy, nil
	}
	c.found, c.missing = found, nil
	if found.IsInternal() && len(c.op.ClusterKeys) > 1 {
		if other, ok := scram.Read(c.mechanism, c.op.ClusterKeys[1]); ok {
			real = real.Or(other)
		}
	}
	return real, nil
}

func (c *scramConversation) step(op *Op, message []byte) (answer []byte, done bool, err error) {
	c.op = op
	text, err := c.talk.Step(string(message))
	c.op = nil
	switch {
	case err == nil && c.speculative && c.missing == errNoCredential: // the client then takes a mechanism that hello names
		return nil, false, c.missing
	case err != nil && c.missing != nil:
		return nil, false, c.missing
	case err != nil:
		return nil, false, err
	}
	done = c.talk.Valid()
	if done && c.found == nil {
		return nil, false, c.missing
	}
	return []byte(text), done, nil
}
