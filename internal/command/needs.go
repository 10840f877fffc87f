package command

import (
	"context"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Needs is what whoever runs a command must be allowed to do: all that it says.
type Needs struct {
	// Nothing: whoever has logged in may run it. What its arguments need is seen where they are read.
	Nothing bool
	// OnCluster, OnDatabase and OnCollection are actions on the server, on the command's database, and on the collection that its first
	// argument names; a command whose first argument is no name of a collection needs them on the database.
	OnCluster, OnDatabase, OnCollection []privilege.Action
	// Also tells what the arguments need: nil, or op.refusal(). It runs before anything else looks at the arguments, so it has to make
	// do with whatever they are: what is no valid argument is refused later.
	Also func(*Op) error
}

// Authority knows the users.
type Authority interface {
	// Find is a user; UserNotFound where there is none.
	Find(ctx context.Context, name auth.Name) (*auth.User, error)
	// HasUsers says whether there are any users.
	HasUsers(ctx context.Context) (bool, error)
	// Now is the user as it stands now, which is u itself where nothing has changed; an error where there is no such user any more, or
	// where it may not be used from here.
	Now(ctx context.Context, u *auth.User) (*auth.User, error)
}

// authorize refuses the command to those who may not run it. It is called where the server has them log in.
func (op *Op) authorize(ctx context.Context) error {
	user, err := op.currentUser(ctx)
	if err != nil {
		return err
	}
	if op.Command.NoAuth {
		return nil
	}
	if user == nil {
		return mongoerr.New(mongoerr.Unauthorized, "Command %s requires authentication", op.Command.Name)
	}
	n := &op.Command.Needs
	if !op.mayAll(privilege.Cluster(), n.OnCluster) || !op.mayAll(privilege.Database(op.DB), n.OnDatabase) ||
		len(n.OnCollection) > 0 && !op.mayAll(op.named(), n.OnCollection) {
		return op.refusal()
	}
	if n.Also != nil {
		return n.Also(op)
	}
	return nil
}

// currentUser is who has logged in on the connection, as it stands now; nil for nobody.
func (op *Op) currentUser(ctx context.Context) (*auth.User, error) {
	was := op.Conn.user.Load()
	if was == nil {
		return nil, nil
	}
	now, err := op.Users.Now(ctx, was)
	if err != nil {
		return nil, err
	}
	if now != was {
		op.Conn.user.Store(now)
	}
	return now, nil
}

// named is the collection that the command's first argument names, or its database.
func (op *Op) named() privilege.Resource {
	if _, v := op.Args.first(); v.Type == bson.TypeString {
		return privilege.Collections(op.DB, v.Str())
	}
	return privilege.Database(op.DB)
}

// May says whether whoever runs the command may do that; everybody may where nobody has to log in.
func (op *Op) May(r privilege.Resource, a privilege.Action) bool {
	if !op.Authorization {
		return true
	}
	user := op.Conn.user.Load()
	return user != nil && user.Grants.Allows(r, a)
}

func (op *Op) mayAll(r privilege.Resource, as []privilege.Action) bool {
	for _, a := range as {
		if !op.May(r, a) {
			return false
		}
	}
	return true
}

// refusal is the error of a command that is not allowed.
func (op *Op) refusal() error {
	return mongoerr.New(mongoerr.Unauthorized, "not authorized on %s to execute command %s", op.DB, op.Args.Document())
}
