package command

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/oidc"
	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// maxPayloadBytes bounds one message of a login, and maxTokenBytes one that has a token.
	maxPayloadBytes = scram.MaxMessage
	maxTokenBytes   = oidc.MaxToken + 256
	// conversationID is what each conversation is called: a connection has one at a time.
	conversationID = 1
)

func saslCommands() []*Command {
	payload := []string{"payload"}
	return []*Command{
		{Name: "saslStart", Doc: "Begins to log the client in.", NoAuth: true, NoSession: true, Sensitive: payload, Run: saslStart},
		{Name: "saslContinue", Doc: "Goes on with logging the client in.", NoAuth: true, NoSession: true, Sensitive: payload, Run: saslContinue},
	}
}

// conversation is one login by a mechanism of several messages.
type conversation interface {
	// step answers a message. done says that the client has shown who it is, which user tells then. The error of a message that is
	// not good is for the log alone.
	step(op *Op, message []byte) (answer []byte, done bool, err error)
	// name is whom the client says it is, without a Name as long as it has not said.
	name() auth.Name
	// user is who it has shown to be, and by which token; nil where that ends by a logout alone.
	user() (*auth.User, *oidc.Voucher)
	// proves says whether the message, the nth, is to show who the client is: a guess of a password. name tells by then whom it says that it is.
	proves(op *Op, n int, message []byte) bool
}

// newConversation begins one by the mechanism that is asked for; nil where nobody logs in by it.
func (op *Op) newConversation(r saslRequest) conversation {
	switch {
	case !op.offers(r.mechanism) && !r.isMember():
		return nil
	case r.mechanism == plainMechanism && op.Directory != nil:
		return newPlainConversation(r)
	case r.mechanism == oidcMechanism && op.issuers != nil:
		return &oidcConversation{db: r.db}
	case scram.Known(r.mechanism):
		return newScramConversation(r)
	}
	return nil
}

// login is the conversation of a connection.
type login struct {
	conversation
	mechanism   string
	speculative bool
	// short leaves out the exchange of empty messages at the end; proven is set while that is waited for.
	short, proven bool
	// guessed says that the last message was to show who the client is, and that it had its turn; hasTurn that it has had that before it came.
	guessed, hasTurn bool
	steps            int
}

// saslRequest is what saslStart, or hello in its place, is asked.
type saslRequest struct {
	mechanism, db string
	payload       saslPayload
	short         bool
	speculative   bool
}

// saslPayload is a message, and whether it came as text, as the answer has to go.
type saslPayload struct {
	bytes  []byte
	isText bool
}

func (op *Op) readPayload(a *Args, mechanism string) (p saslPayload) {
	most := maxPayloadBytes
	if mechanism == oidcMechanism {
		most = maxTokenBytes
	}
	v := a.Value("payload")
	if v.IsMissing() {
		a.Required("payload")
		return p
	}
	var err error
	switch v.Type {
	case bson.TypeString:
		p.isText = true
		if len(v.Str()) > base64.StdEncoding.EncodedLen(most) {
			err = errPayloadSize(most)
		} else if p.bytes, err = base64.StdEncoding.DecodeString(v.Str()); err != nil {
			err = mongoerr.New(mongoerr.BadValue, "The payload is not base64")
		}
	case bson.TypeBinary:
		if _, p.bytes = v.Binary(); len(p.bytes) > most {
			err = errPayloadSize(most)
		}
	default:
		err = a.wrongType("payload", v.Type, []bson.Type{bson.TypeBinary, bson.TypeString})
	}
	if err != nil {
		a.Fail(err)
	}
	return p
}

func errPayloadSize(most int) error {
	return mongoerr.New(mongoerr.BadValue, "A payload may have %d bytes at most", most)
}

// append puts the answer into a reply.
func (p saslPayload) append(b *bson.Builder, answer []byte) *bson.Builder {
	if p.isText {
		return b.String("payload", base64.StdEncoding.EncodeToString(answer))
	}
	return b.Binary("payload", 0, answer)
}

// isMember says whether a member of the replica set begins to show that it is one. It does so by SCRAM whatever the users' mechanisms are.
func (r saslRequest) isMember() bool {
	_, message, _ := bytes.Cut(r.payload.bytes, []byte(",,"))
	return scram.Known(r.mechanism) && r.db == auth.Internal().Name.DB && bytes.HasPrefix(message, []byte("n="+auth.Internal().Name.Name+","))
}

// readSaslStart reads the arguments of saslStart.
func (op *Op) readSaslStart(a *Args) saslRequest {
	r := saslRequest{db: op.DB}
	a.Ignore("autoAuthorize")
	a.Required("mechanism")
	mechanism, _ := a.String("mechanism")
	r.mechanism = strings.Clone(mechanism)
	r.payload = op.readPayload(a, r.mechanism)
	if options := a.Doc("options"); options != nil {
		r.short = options.Lookup("skipEmptyExchange").Truthy()
	}
	return r
}

func saslStart(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name())
	r := op.readSaslStart(op.Args)
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	return op.startLogin(r)
}

// startLogin begins a conversation in the place of the one before.
func (op *Op) startLogin(r saslRequest) (bson.Doc, error) {
	op.abandonLogin()
	talk := op.newConversation(r)
	if talk == nil {
		op.tellResult("authenticate", loginParam("", r.db, r.mechanism), mechanismUnavailable, false)
		return nil, mongoerr.New(mongoerr.MechanismUnavailable, "Received authentication for mechanism %.100s which is unknown or not enabled", r.mechanism)
	}
	op.logins.of(r.mechanism).begun(r.speculative)
	op.Conn.login = &login{conversation: talk, mechanism: r.mechanism, speculative: r.speculative, short: r.short}
	return op.continueLogin(r.payload)
}

// abandonLogin ends the connection's conversation, if it has one: another begins in its place.
func (op *Op) abandonLogin() {
	if l := op.Conn.login; l != nil {
		op.tellResult("authenticate", loginParam(l.name().Name, l.name().DB, l.mechanism), authenticationAbandoned, false)
		op.Conn.login = nil
	}
}

func saslContinue(op *Op) (bson.Doc, error) {
	a := op.Args
	a.Ignore(op.Name())
	a.Required("conversationId")
	id, _ := a.Int("conversationId")
	mechanism := ""
	if op.Conn.login != nil {
		mechanism = op.Conn.login.mechanism
	}
	payload := op.readPayload(a, mechanism)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if op.Conn.login == nil {
		return nil, mongoerr.New(mongoerr.ProtocolError, "No SASL session state found")
	}
	if id != conversationID {
		op.abandonLogin()
		return nil, mongoerr.New(mongoerr.ProtocolError, "sasl: Mismatched conversation id")
	}
	return op.continueLogin(payload)
}

// continueLogin answers a message of the connection's conversation, which is over after an error.
func (op *Op) continueLogin(payload saslPayload) (bson.Doc, error) {
	l := op.Conn.login
	answer, done, err := l.next(op, payload.bytes)
	if err != nil {
		op.Conn.login = nil
		return nil, op.loginFailed(l, err)
	}
	if done {
		op.Conn.login = nil
		if err := op.loginSucceeded(l); err != nil {
			return nil, err
		}
	}
	b := bson.Build().Int32("conversationId", conversationID).Bool("done", done)
	return payload.append(b, answer).Doc(), nil
}

// errUnexpected is why a login failed whose client went on talking.
var errUnexpected = errors.New("an empty message was expected")

// next is a step, but that an exchange of empty messages comes behind the last one of SCRAM where the client did not ask to leave it out.
func (l *login) next(op *Op, message []byte) (answer []byte, done bool, err error) {
	if l.proven {
		if len(message) > 0 {
			return nil, false, errUnexpected
		}
		return nil, true, nil
	}
	l.steps++
	l.guessed = false
	if l.proves(op, l.steps, message) {
		if err := l.awaitTurn(op.Ctx, op.Server, op.Conn); err != nil {
			return nil, false, err
		}
		l.guessed, l.hasTurn = true, false
	}
	answer, done, err = l.step(op, message)
	if done && !l.short && scram.Known(l.mechanism) {
		l.proven, done = true, false
	}
	return answer, done, err
}

// awaitTurn waits until the login may show who the client is, unless it has waited for that.
func (l *login) awaitTurn(ctx context.Context, s *Server, conn *Conn) error {
	if l.hasTurn {
		return nil
	}
	err := s.awaitTurn(ctx, conn.who(l.name()))
	l.hasTurn = err == nil
	return err
}

// speculate logs the client in, or begins to, while it says hello, where it asks for that. What fails is as if it had not asked.
func (op *Op) speculate(asked bson.Doc, b *bson.Builder) {
	if asked == nil || asked.Lookup("saslStart").IsMissing() {
		op.speculateByCertificate(asked, b)
		return
	}
	db := asked.Lookup("db")
	if db.Type != bson.TypeString {
		return
	}
	a := NewArgs("speculativeAuthenticate", asked)
	a.Ignore("saslStart", "db")
	r := op.readSaslStart(a)
	r.db, r.speculative = strings.Clone(db.Str()), true
	if a.Done() != nil {
		return
	}
	if reply, err := op.startLogin(r); err == nil {
		b.Document("speculativeAuthenticate", reply)
	}
}
