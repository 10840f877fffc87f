package command

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
)

// wall is a directory that takes no password.
type wall struct{}

func (wall) Login(context.Context, string, string) ([]string, bool, error) {
	return nil, false, errors.New("the directory does not take the password")
}

// FuzzSaslMessages has a client send two messages of any mechanism: it gets an answer, and is nobody.
func FuzzSaslMessages(f *testing.F) {
	for i := range uint8(4) {
		f.Add(i, false, []byte("n,,n=both,r=abc"), []byte("c=biws,r=abc,p=AAAA"))
		f.Add(i, true, []byte("\x00both\x00pw"), []byte("\x05\x00\x00\x00\x00"))
		f.Add(i, true, []byte(bson.MustDoc(`{jwt: "a.b.c"}`)), []byte(bson.MustDoc(`{n: "ann"}`)))
		f.Add(i, false, []byte(bson.MustDoc(`{}`)), []byte{})
	}
	on, _ := newTokensHarness(f, "MONGODB-OIDC,PLAIN,SCRAM-SHA-1,SCRAM-SHA-256")
	h := newLoginsOn(f, on)
	h.server.Directory = wall{}
	mechanisms := []string{scram.SHA1, scram.SHA256, plainMechanism, oidcMechanism}
	f.Fuzz(func(t *testing.T, mechanism uint8, outside bool, first, last []byte) {
		h.clock.Advance(time.Minute) // failures are forgiven
		db := "admin"
		if outside {
			db = externalDB
		}
		start := bson.Build().Int32("saslStart", 1).String("mechanism", mechanisms[int(mechanism)%len(mechanisms)]).Binary("payload", 0, first).Doc()
		next := bson.Build().Int32("saslContinue", 1).Int32("conversationId", 1).Binary("payload", 0, last).Doc()
		conn := h.server.Connect(7, "127.0.0.1:50007", "127.0.0.1:27018")
		defer h.server.Disconnect(conn)
		for _, message := range []bson.Doc{start, next} {
			reply := h.sendOn(t.Context(), conn, db, message).Body
			if reply.Lookup("done").Truthy() || conn.user.Load() != nil {
				t.Fatalf("%s is answered by %s", message, reply)
			}
			if code := int(reply.Lookup("code").AsDouble()); code == 1 || code == 8 {
				t.Fatalf("%s fails within the server: %s", message, reply)
			}
		}
	})
}
