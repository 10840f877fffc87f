package command

import (
	"context"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/certificate"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// x509Mechanism is the login by the certificate of a client's connection.
const x509Mechanism = "MONGODB-X509"

func authenticateCommands() []*Command {
	return []*Command{
		{Name: "authenticate", Doc: "Logs the client in by its certificate.", NoAuth: true, Sensitive: []string{"key", "nonce"}, Run: authenticate},
	}
}

func authenticate(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name(), "nonce", "key", "digestPassword")
	a.Required("mechanism")
	mechanism, _ := a.String("mechanism")
	user, _ := a.String("user")
	if err := a.Done(); err != nil {
		return nil, err
	}
	if mechanism != x509Mechanism || !op.offers(mechanism) {
		op.AccessLog.Info("Failed to authenticate", "client", op.Conn.Remote, "mechanism", mechanism, "user", user, "db", op.DB, "error", "Unsupported mechanism")
		op.tellResult("authenticate", loginParam(user, op.DB, mechanism), mechanismUnavailable, false)
		return nil, errAuthentication()
	}
	u, err := op.loginByCertificate(op.Ctx, auth.Name{Name: user, DB: op.DB}, false)
	if err != nil {
		return nil, err
	}
	return bson.Build().String("dbname", op.DB).String("user", u).Doc(), nil
}

// loginByCertificate logs the client in as whom its certificate says it is, which the name, where it has one, must be. It returns that
// name. Only that there is no such user is told; the rest is in the log.
func (op *Op) loginByCertificate(ctx context.Context, name auth.Name, speculative bool) (subject string, err error) {
	op.logins.x509.begun(speculative)
	peer := op.peer()
	if name.Name == "" && peer != nil {
		name.Name = peer.Subject
	}
	u, err := op.certificateUser(ctx, name, peer)
	if err == nil {
		err = op.becomes(u)
	}
	if err != nil {
		op.AccessLog.Info("Failed to authenticate", "client", op.Conn.Remote, "mechanism", x509Mechanism, "user", name.Name, "db", name.DB, "error", err.Error())
		op.tellResult("authenticate", loginParam(name.Name, name.DB, x509Mechanism), mongoerr.AuthenticationFailed, false)
		if mongoerr.Is(err, mongoerr.UserNotFound) || mongoerr.Is(err, mongoerr.ProtocolError) || mongoerr.Is(err, manyUsers) || mongoerr.Is(err, anotherUser) {
			return "", err
		}
		return "", errAuthentication()
	}
	op.logins.x509.succeeded(speculative, u.IsInternal())
	op.AccessLog.Info("Successfully authenticated", "client", op.Conn.Remote, "mechanism", x509Mechanism, "user", name.Name, "db", name.DB)
	op.tellResult("authenticate", loginParam(name.Name, name.DB, x509Mechanism), 0, false)
	return name.Name, nil
}

// peer is the certificate of the connection; nil where it has none.
func (op *Op) peer() *certificate.Peer {
	if op.Conn.Peer == nil {
		return nil
	}
	return op.Conn.Peer()
}

// certificateUser is the user whom a certificate makes a client, which says that it has the name.
func (op *Op) certificateUser(ctx context.Context, name auth.Name, peer *certificate.Peer) (*auth.User, error) {
	refuse := func(code mongoerr.Code, text string) (*auth.User, error) { return nil, mongoerr.New(code, "%s", text) }
	switch {
	case peer == nil || peer.Subject == "":
		return refuse(mongoerr.AuthenticationFailed, "No verified subject name available from client")
	case name.Name != peer.Subject:
		return refuse(mongoerr.AuthenticationFailed, "There is no x.509 client certificate matching the user.")
	case name.DB != externalDB:
		return refuse(mongoerr.ProtocolError, "X.509 authentication must always use the $external database.")
	case peer.Member && op.ClusterAuth.TakesX509():
		return auth.Internal(), nil
	case peer.Member && op.separatesMembers():
		return refuse(mongoerr.AuthenticationFailed, "The provided certificate can only be used for cluster authentication, not client authentication. "+
			"The current configuration does not allow x.509 cluster authentication, check the --clusterAuthMode flag")
	case op.Users == nil:
		return refuse(mongoerr.UserNotFound, "Could not find user \""+name.Name+"\" for db \""+name.DB+"\"")
	}
	name = auth.Name{Name: peer.Subject, DB: externalDB} // what the client sent of it is in its message, and the user stays
	if peer.Roles == nil || !op.Params.Lookup(certificateRolesName).Get().Bool() {
		return op.Users.Find(ctx, name)
	}
	roles := make([]auth.Name, 0, len(peer.Roles))
	for _, r := range peer.Roles {
		roles = append(roles, auth.Name{Name: r.Name, DB: r.DB})
	}
	return op.Users.Vouched(ctx, name, roles)
}

// speculateByCertificate logs the client in while it says hello, where it asks for that. What fails is as if it had not asked.
func (op *Op) speculateByCertificate(asked bson.Doc, b *bson.Builder) {
	if asked == nil || asked.Lookup("authenticate").IsMissing() {
		return
	}
	mechanism, user, db := asked.Lookup("mechanism"), asked.Lookup("user"), asked.Lookup("db")
	if mechanism.Type != bson.TypeString || mechanism.Str() != x509Mechanism || !op.offers(x509Mechanism) {
		return
	}
	name := auth.Name{DB: externalDB}
	if user.Type == bson.TypeString {
		name.Name = string([]byte(user.Str()))
	}
	if db.Type == bson.TypeString {
		name.DB = string([]byte(db.Str()))
	}
	subject, err := op.loginByCertificate(op.Ctx, name, true)
	if err != nil {
		return
	}
	b.Object("speculativeAuthenticate").String("dbname", name.DB).String("user", subject).End()
}
