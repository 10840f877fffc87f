package command

import (
	"context"
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
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

func actions(as ...privilege.Action) []privilege.Action { return as }

// Authority knows the users.
type Authority interface {
	// Find is a user; UserNotFound where there is none.
	Find(ctx context.Context, name auth.Name) (*auth.User, error)
	// Vouched is a user that is stored nowhere, with roles that somebody vouches for.
	Vouched(ctx context.Context, name auth.Name, roles []auth.Name) (*auth.User, error)
	// HasUsers says whether there are any users.
	HasUsers(ctx context.Context) (bool, error)
	// HasRoles says whether somebody has defined roles.
	HasRoles(ctx context.Context) (bool, error)
	// Now is the user as it stands now, which is u itself where nothing has changed; an error where there is no such user any more, or
	// where it may not be used from here.
	Now(ctx context.Context, u *auth.User) (*auth.User, error)
	// Version is another one whenever users or roles have changed.
	Version() auth.Version
	// Forget has all users be read anew.
	Forget()
}

// authorize refuses the command to those who may not run it. It is called where the server has them log in.
func (op *Op) authorize(ctx context.Context) error {
	user, err := op.currentUser(ctx)
	if err != nil {
		return err
	}
	if op.Command.NoAuth || op.Command.NoAuthIf != nil && op.Command.NoAuthIf(op) {
		return nil
	}
	if op.Conn.expired.Name != "" {
		return mongoerr.New(mongoerr.ReauthenticationRequired, "Command %s requires reauthentication since the current authorization session has expired. Please re-auth.", op.Command.Name)
	}
	if user == nil && op.mayBootstrap(ctx) {
		op.bootstraps = true
		return op.permit()
	}
	if user == nil {
		return mongoerr.New(mongoerr.Unauthorized, "Command %s requires authentication", op.Command.Name)
	}
	return op.permit()
}

// permit refuses the command to a user who may not run it.
func (op *Op) permit() error {
	n := &op.Command.Needs
	if !op.mayAll(privilege.Cluster(), n.OnCluster) || !op.mayAll(privilege.Database(op.DB), n.OnDatabase) ||
		len(n.OnCollection) > 0 && !op.mayNamed(n.OnCollection...) {
		return op.refusal()
	}
	if n.Also != nil {
		return n.Also(op)
	}
	return nil
}

// currentUser is who has logged in on the connection, as it stands now; nil for nobody. Who is gone, or may not be used from here any more,
// has logged in no longer.
func (op *Op) currentUser(ctx context.Context) (*auth.User, error) {
	was := op.Conn.user.Load()
	if was == nil || was.IsInternal() {
		return was, nil
	}
	if v := op.Conn.voucher; v != nil && !v.Holds(op.Clock.Now()) {
		op.AccessLog.Info("The user's token is not valid any more", "client", op.Conn.Remote, "user", was.String())
		op.Conn.become(nil)
		op.Conn.expired = was.Name
		return nil, nil
	}
	now, err := op.Users.Now(ctx, was)
	switch {
	case mongoerr.Is(err, mongoerr.UserNotFound) || mongoerr.Is(err, mongoerr.AuthenticationRestrictionUnmet):
		op.AccessLog.Info("Removed deleted user from session cache of user information", "user", was.String())
		op.Conn.become(nil)
		return nil, nil
	case err != nil:
		return nil, err
	case now != was && !op.Conn.allows(now):
		op.AccessLog.Info("Removed user with unmet authentication restrictions from session cache of user information", "user", was.String())
		op.Conn.become(nil)
		return nil, nil
	case now != was:
		op.Conn.become(now)
	}
	return now, nil
}

// named is the collection that the command's first argument names, by name or by UUID, or its database. ok is false where it may not be
// named so.
func (op *Op) named() (on privilege.Resource, ok bool) {
	_, v := op.Args.first()
	switch {
	case v.Type == bson.TypeString || v.Type == bson.TypeSymbol:
		return privilege.Namespace(namespace.NS{DB: op.DB, Coll: v.Str()}), true
	case isUUID(v):
		_, data := v.Binary()
		if len(data) == 16 {
			if c := op.Query.Store.Catalog().ByUUID([16]byte(data)); c != nil && c.NS.DB == op.DB {
				return privilege.Namespace(c.NS), op.May(privilege.Cluster(), privilege.UseUUID)
			}
		}
		return privilege.Database(op.DB), op.May(privilege.Cluster(), privilege.UseUUID)
	}
	return privilege.Database(op.DB), true
}

// mayNamed says whether all of that may be done on what the first argument names.
func (op *Op) mayNamed(as ...privilege.Action) bool {
	on, ok := op.named()
	return ok && op.mayAll(on, as)
}

// user is who runs the command; nil for nobody, who may do everything where nobody has to log in.
func (op *Op) user() *auth.User {
	if !op.Authorization {
		return nil
	}
	return op.Conn.user.Load()
}

// userRoles is $$USER_ROLES: no roles for nobody, Missing where expressions may not ask for them.
func (op *Op) userRoles() bson.Value {
	if !op.roleAccess.Get().Bool() {
		return bson.Missing
	}
	if u := op.Conn.user.Load(); u != nil {
		return u.RolesValue
	}
	return bson.EmptyArr
}

// May says whether whoever runs the command may do that; everybody may where nobody has to log in.
func (op *Op) May(r privilege.Resource, a privilege.Action) bool {
	if !op.Authorization {
		return true
	}
	user := op.Conn.user.Load()
	if user == nil {
		return op.bootstraps && bootstrap().Allows(r, a)
	}
	return user.Grants.Allows(r, a)
}

// mayOn is May of actions on a collection.
func (op *Op) mayOn(ns namespace.NS, as ...privilege.Action) bool {
	return op.mayAll(privilege.Namespace(ns), as)
}

func (op *Op) mayAll(r privilege.Resource, as []privilege.Action) bool {
	for _, a := range as {
		if !op.May(r, a) {
			return false
		}
	}
	return true
}

// maxRefusedBytes is how much of a command is shown in the error of its refusal.
const maxRefusedBytes = 10 << 10

// refusal is the error of a command that is not allowed.
func (op *Op) refusal() error {
	text := op.concealed().Value().Beginning(maxRefusedBytes)
	return mongoerr.New(mongoerr.Unauthorized, "not authorized on %s to execute command %s", op.DB, strings.ToValidUTF8(text, ""))
}

// permitted is nil, or the refusal of the command.
func (op *Op) permitted(ok bool) error {
	if ok {
		return nil
	}
	return op.refusal()
}
