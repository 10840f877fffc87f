package command

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/oidc"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
)

// oidcMechanism is the login by a token of OpenID Connect.
const oidcMechanism = "MONGODB-OIDC"

func oidcCommands() []*Command {
	return []*Command{
		{Name: "oidcListKeys", Needs: Needs{OnCluster: actions(privilege.OIDCListKeys)}, Doc: "Shows the keys of the issuers whose tokens are taken.", AdminOnly: true, Run: oidcListKeys},
		{Name: "oidcRefreshKeys", Needs: Needs{OnCluster: actions(privilege.OIDCRefreshKeys)}, Doc: "Fetches the keys of the issuers whose tokens are taken.", AdminOnly: true, Run: oidcRefreshKeys},
	}
}

// newIssuers are those whose tokens are taken, as the parameters say; nil where none are.
func (s *Server) newIssuers() *oidc.Issuers {
	p := s.Params.Lookup(providersName)
	if p == nil || !s.offers(oidcMechanism) {
		return nil
	}
	providers, err := oidc.Parse(p.Get().Doc())
	if err != nil {
		panic(err) // the parameter was looked at when it was set
	}
	if len(providers) == 0 {
		return nil
	}
	return oidc.New(providers, oidc.Options{Clock: s.Clock, Log: s.AccessLog, Quiet: func() time.Duration { return time.Duration(s.setting(quiesceName)) * time.Second }})
}

// errMessage is why a login fails whose client says neither who it is nor has a token.
var errMessage = errors.New("the message is none of MONGODB-OIDC for a user of $external")

// oidcConversation logs a client in by a token: at once, or after it was told where it gets one.
type oidcConversation struct {
	db string
	// hint is whom the client said that it is when it asked for that; asked says that it did.
	hint  string
	asked bool
	// claimed is whom the token says that it vouches for, which is not shown yet.
	claimed string
	found   *auth.User
	voucher *oidc.Voucher
}

func (c *oidcConversation) name() auth.Name                   { return auth.Name{Name: c.claimed, DB: c.db} }
func (c *oidcConversation) user() (*auth.User, *oidc.Voucher) { return c.found, c.voucher }

func (c *oidcConversation) proves(op *Op, _ int, message []byte) bool {
	token, _, err := readOIDC(message)
	if err != nil || token == "" {
		return false
	}
	c.claimed = op.issuers.Claimed(token)
	return true
}

// readOIDC reads a message: {jwt: …}, or {n: …} with or without a name.
func readOIDC(message []byte) (token, name string, err error) {
	if bson.Validate(message, bson.MaxDepth) != nil {
		return "", "", errMessage
	}
	d := bson.Doc(message)
	for _, field := range []struct {
		name string
		to   *string
	}{{"jwt", &token}, {"n", &name}} {
		switch v := d.Lookup(field.name); v.Type {
		case bson.TypeMissing:
		case bson.TypeString:
			*field.to = strings.Clone(v.Str())
		default:
			return "", "", errMessage
		}
	}
	return token, name, nil
}

func (c *oidcConversation) step(op *Op, message []byte) (answer []byte, done bool, err error) {
	token, name, err := readOIDC(message)
	switch {
	case err != nil:
		return nil, false, err
	case c.db != externalDB || token == "" && c.asked:
		return nil, false, errMessage
	case token == "":
		c.hint, c.asked = name, true
		answer, err = op.whereTokensAre(name)
		return answer, false, err
	}
	if c.voucher, err = op.issuers.Verify(op.Ctx, token); err != nil {
		return nil, false, err
	}
	if c.hint != "" && c.hint != c.voucher.Principal {
		return nil, false, fmt.Errorf("Principal name changed between step1 '%.200s' and step2 '%.200s'", c.hint, c.voucher.Principal)
	}
	if c.found, err = op.externalUser(auth.Name{Name: c.voucher.Name, DB: externalDB}, c.voucher.Roles, c.voucher.RolesKnown); err != nil {
		return nil, false, err
	}
	return nil, true, nil
}

// whereTokensAre tells a client where it gets a token.
func (op *Op) whereTokensAre(name string) ([]byte, error) {
	p, err := op.issuers.Provider(name)
	if err != nil {
		return nil, err
	}
	b := bson.Build().String("issuer", p.Issuer)
	if p.HumanFlows {
		b.String("clientId", p.ClientID)
	}
	if len(p.RequestScopes) > 0 {
		b.Strings("requestScopes", p.RequestScopes)
	}
	return b.Doc(), nil
}

// readProviders reads which issuers are meant; nil for all.
func readProviders(a *Args) (addresses []string) {
	list := a.Array("identityProviders")
	if list == nil {
		return nil
	}
	addresses = []string{}
	for it := list.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeString {
			a.Fail(a.wrongType("identityProviders."+it.Key(), it.Value().Type, []bson.Type{bson.TypeString}))
			return nil
		}
		addresses = append(addresses, strings.Clone(it.Value().Str()))
	}
	return addresses
}

func oidcListKeys(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	addresses := readProviders(a)
	if err := a.Done(); err != nil {
		return nil, err
	}
	b := bson.Build().Object("keySets")
	if err := op.issuers.AppendKeys(b, addresses); err != nil {
		return nil, err
	}
	return b.End().Doc(), nil
}

func oidcRefreshKeys(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	addresses := readProviders(a)
	flush := a.Bool("invalidateOnFailure", true)
	if err := a.Done(); err != nil {
		return nil, err
	}
	return bson.EmptyDoc, op.issuers.Refresh(op.Ctx, addresses, flush)
}
