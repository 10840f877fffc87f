package command

import (
	"context"
	"errors"
	"slices"

	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
)

// LogIn logs a connection in by a name and a password, by the commands by which drivers do it, so that what holds for them holds here: who waits after
// failures, what the log tells, from where a user may come. The error is what a client may be told.
func (s *Server) LogIn(ctx context.Context, conn *Conn, db, user, password string) error {
	if db == externalDB {
		_, err := s.say(ctx, conn, bson.Build().Int32("saslStart", 1).String("mechanism", plainMechanism).
			Binary("payload", 0, []byte("\x00"+user+"\x00"+password)).String("$db", db).Doc())
		return err
	}
	hello, err := s.say(ctx, conn, bson.Build().Int32("hello", 1).String("saslSupportedMechs", db+"."+user).String("$db", "admin").Doc())
	if err != nil {
		return err
	}
	mechanism := loginMechanism(hello)
	client, err := scram.NewClient(mechanism, user, password)
	if err != nil {
		return err
	}
	first, err := client.Step("")
	if err != nil {
		return errAuthentication()
	}
	challenge, err := s.say(ctx, conn, bson.Build().Int32("saslStart", 1).String("mechanism", mechanism).Binary("payload", 0, []byte(first)).
		Object("options").Bool("skipEmptyExchange", true).End().String("$db", db).Doc())
	if err != nil {
		return err
	}
	proof, err := s.prove(ctx, conn, client, challenge)
	if err != nil {
		return err
	}
	last, err := s.say(ctx, conn, bson.Build().Int32("saslContinue", 1).Int32("conversationId", conversationID).
		Binary("payload", 0, []byte(proof)).String("$db", db).Doc())
	if err != nil {
		return err
	}
	if _, err := client.Step(payloadOf(last)); err != nil || !client.Valid() {
		return errAuthentication()
	}
	return nil
}

// prove answers the server's challenge by a proof that the client knows the password, which is hashed for it. That is work for whoever asks, so it is
// done when the login has its turn, and for as many at once as may have a password hashed.
func (s *Server) prove(ctx context.Context, conn *Conn, client *scram.Client, challenge bson.Doc) (proof string, err error) {
	if err := conn.login.awaitTurn(ctx, s, conn); err != nil {
		return "", err
	}
	err = s.hash(ctx, func() (err error) {
		if proof, err = client.Step(payloadOf(challenge)); err != nil {
			return errAuthentication()
		}
		return nil
	})
	return proof, err
}

// payloadOf is the message in a reply to saslStart or saslContinue.
func payloadOf(reply bson.Doc) string {
	v := reply.Lookup("payload")
	if v.Type != bson.TypeBinary {
		return ""
	}
	_, payload := v.Binary()
	return string(payload)
}

// say runs a command on a connection that somebody within the server keeps.
func (s *Server) say(ctx context.Context, conn *Conn, doc bson.Doc) (bson.Doc, error) {
	reply := s.Handle(ctx, conn, Request{Body: doc}).Body.Clone()
	if reply.Lookup("ok").Truthy() {
		return reply, nil
	}
	if why := reply.Lookup("errmsg"); why.Type == bson.TypeString && why.Str() != "" {
		return nil, errors.New(why.Str())
	}
	return nil, errAuthentication()
}

// loginMechanism is the one to log in by, of those that hello tells.
func loginMechanism(hello bson.Doc) string {
	var offered []string
	if v := hello.Lookup("saslSupportedMechs"); v.Type == bson.TypeArray {
		for it := v.Doc().Iter(); it.Next(); {
			if m := it.Value(); m.Type == bson.TypeString {
				offered = append(offered, m.Str())
			}
		}
	}
	if len(offered) > 0 && !slices.Contains(offered, scram.SHA256) {
		return scram.SHA1
	}
	return scram.SHA256
}
