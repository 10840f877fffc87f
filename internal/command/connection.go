package command

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func connectionCommands() []*Command {
	return []*Command{
		{Name: "whatsmyuri", Doc: "Says where the client comes from.", NoAuth: true, Run: whatsMyURI},
		{Name: "connectionStatus", Doc: "Says who is logged in on the connection.", NoAuth: true, Run: connectionStatus},
		{Name: "logout", Doc: "Ends the login of the connection.", NoAuth: true, Run: logout},
		{Name: "getnonce", Doc: "A number for a login that nobody uses any more; old clients ask for it first.", NoAuth: true, Run: getNonce},
		{Name: "connPoolStats", Needs: Needs{OnCluster: actions(privilege.ConnPoolStats)}, Doc: "Tells of connections to other servers.", Run: connPoolStats},
		{Name: "dropConnections", Needs: Needs{OnCluster: actions(privilege.DropConnections)}, Doc: "Closes connections to other servers.", AdminOnly: true, Run: dropConnections},
	}
}

func whatsMyURI(op *Op) (bson.Doc, error) {
	return bson.Build().String("you", op.Conn.Remote).Doc(), nil
}

func connectionStatus(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	privileges := op.Args.SafeBool("showPrivileges", false)
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	user, err := op.currentUser(op.Ctx)
	if err != nil {
		return nil, err
	}
	b := bson.Build().Object("authInfo")
	appendUser(b, user, privileges)
	return b.End().Binary("uuid", 4, op.Conn.uuid[:]).Doc(), nil
}

// appendUser tells who somebody is, nil for nobody, and what that one may do.
func appendUser(b *bson.Builder, user *auth.User, privileges bool) {
	b.Array("authenticatedUsers")
	if user == nil {
		user = &auth.User{}
	} else {
		b.Object("0").String("user", user.Name.Name).String("db", user.DB).End()
	}
	b.End().Array("authenticatedUserRoles")
	for i, r := range user.All {
		b.Object(bson.IndexKey(i)).String("role", r.Name).String("db", r.DB).End()
	}
	b.End()
	if !privileges {
		return
	}
	b.Array("authenticatedUserPrivileges")
	for i, p := range user.Grants.Privileges() {
		b.Document(bson.IndexKey(i), p.Doc())
	}
	b.End()
}

// logout ends the login by a user of the command's database.
func logout(op *Op) (bson.Doc, error) {
	if err := op.noArguments(); err != nil {
		return nil, err
	}
	if u := op.Conn.user.Load(); u != nil && u.DB == op.DB {
		op.tellResult("logout", logoutParam("Explicit logout from db '"+op.DB+"'", u), 0, false)
		op.Conn.become(nil)
	}
	if op.Conn.expired.DB == op.DB {
		op.Conn.expired = auth.Name{}
	}
	return bson.EmptyDoc, nil
}

// getNonce answers what left MongoDB with the login of its time, and what some old drivers cannot begin without.
func getNonce(op *Op) (bson.Doc, error) {
	if err := op.noArguments(); err != nil {
		return nil, err
	}
	return bson.Build().String("nonce", fmt.Sprintf("%016x", rand.Uint64())).Doc(), nil
}

// connPoolStats has little to tell: the server opens no connections to others.
func connPoolStats(op *Op) (bson.Doc, error) {
	b := bson.Build().Int32("numClientConnections", 0).Int32("numAScopedConnections", 0)
	for _, total := range []string{"totalInUse", "totalAvailable", "totalLeased", "totalCreated", "totalRefreshing", "totalRefreshed", "totalWasNeverUsed"} {
		b.Int32(total, 0)
	}
	return b.Object("pools").End().Object("hosts").End().Object("replicaSets").End().Doc(), nil
}

func dropConnections(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	a.Required("hostAndPort")
	hosts := a.Array("hostAndPort")
	if err := a.Done(); err != nil {
		return nil, err
	}
	if hosts == nil {
		return bson.EmptyDoc, nil
	}
	for it := hosts.Iter(); it.Next(); {
		switch v := it.Value(); {
		case v.IsNullish():
		case v.Type != bson.TypeString:
			return nil, a.wrongType("hostAndPort."+it.Key(), v.Type, []bson.Type{bson.TypeString})
		default:
			if err := checkHostAndPort(v.Str()); err != nil {
				return nil, err
			}
		}
	}
	return bson.EmptyDoc, nil
}

func checkHostAndPort(text string) error {
	if text == "" {
		return mongoerr.New(mongoerr.FailedToParse, "Empty host component parsing HostAndPort from \"\"")
	}
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		host, port = text[:i], text[i+1:]
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return mongoerr.New(mongoerr.FailedToParse, "Port number \"%s\" is not a number between 1 and 65535 parsing HostAndPort from \"%s\"", port, text)
		}
	}
	bracketed := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	switch {
	case host == "":
		return mongoerr.New(mongoerr.FailedToParse, "Empty host component parsing HostAndPort from \"%s\"", text)
	case !bracketed && strings.Contains(host, ":"):
		return mongoerr.New(mongoerr.FailedToParse, "More than one ':' detected; if this is an IPv6 address, it must be surrounded by '[' and ']'; %s", text)
	}
	return nil
}

// portOf is the port of "host:port", "" when there is none.
func portOf(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return port
}

// unixSocketHost is the host of clients that have come by a Unix domain socket.
const unixSocketHost = "anonymous unix socket"

// isLocal says whether the client is on this machine. One whose requests another server hands on never is.
func (c *Conn) isLocal() bool {
	if c.routed {
		return false
	}
	host, _, err := net.SplitHostPort(c.Remote)
	if err != nil {
		return c.Remote == ""
	}
	if host == unixSocketHost {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
