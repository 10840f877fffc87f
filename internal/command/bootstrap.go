package command

import (
	"context"

	"github.com/ebbdb/ebb/internal/auth/privilege"
)

// The localhost exception: as long as there is no user and no role, whoever comes from this machine may make the first one, and begin a
// replica set. Nobody could otherwise.

// bootstrap is what one may do then.
func bootstrap() *privilege.Grants {
	g := &privilege.Grants{}
	g.Add(privilege.On(privilege.Database("admin"), privilege.CreateUser, privilege.CreateRole, privilege.GrantRole))
	g.Add(privilege.On(privilege.Database(externalDB), privilege.CreateUser))
	g.Add(privilege.On(privilege.Cluster(), privilege.AddShard, privilege.ReplSetConfigure, privilege.ReplSetGetStatus))
	return g
}

// mayBootstrap says whether the exception holds. Where nobody knows whether there are users, it does not.
func (op *Op) mayBootstrap(ctx context.Context) bool {
	if op.Users == nil || !op.Conn.isLocal() || !op.flag(localhostBypassName) {
		return false
	}
	users, err := op.Users.HasUsers(ctx)
	if err != nil || users {
		return false
	}
	roles, err := op.Users.HasRoles(ctx)
	return err == nil && !roles
}
