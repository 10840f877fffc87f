package ebb

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/server"
)

// Who asked for something when the server that worked on the data was gone is told what to do about it, as a driver understands it.
func TestGoneReply(t *testing.T) {
	for asked, labels := range map[string]string{
		"{find: 'c'}":   "",
		"{insert: 'c'}": "",
		"{getMore: {$numberLong: '1'}, collection: 'c'}":                                  "ResumableChangeStreamError",
		"{aggregate: 'c', pipeline: [{$changeStream: {}}]}":                               "ResumableChangeStreamError",
		"{aggregate: 'c', pipeline: [{$match: {}}]}":                                      "",
		"{aggregate: 'c', pipeline: []}":                                                  "",
		"{getMore: {$numberLong: '1'}, txnNumber: {$numberLong: '1'}, autocommit: false}": "TransientTransactionError",
		"{insert: 'c', txnNumber: {$numberLong: '1'}}":                                    "RetryableWriteError",
		"{insert: 'c', txnNumber: {$numberLong: '1'}, autocommit: false}":                 "TransientTransactionError",
		"{find: 'c', txnNumber: {$numberLong: '1'}, autocommit: false}":                   "TransientTransactionError",
		"{commitTransaction: 1, txnNumber: {$numberLong: '1'}, autocommit: false}":        "RetryableWriteError",
		"{abortTransaction: 1, txnNumber: {$numberLong: '1'}, autocommit: false}":         "RetryableWriteError",
		"{update: 'c', txnNumber: {$numberLong: '1'}, lsid: {id: 1}, $db: 'autocommit'}":  "RetryableWriteError",
	} {
		reply := goneReply(&server.Request{Body: bson.MustDoc(asked)})
		got := ""
		if l := reply.Body.Lookup("errorLabels"); !l.IsMissing() {
			got = l.Doc().Lookup("0").Str()
		}
		if code := reply.Body.Lookup("code").Int32(); got != labels || code != 6 || reply.Close {
			t.Errorf("%s: %v", asked, reply.Body)
		}
		last := lastReply(&server.Request{Body: bson.MustDoc(asked)})
		if !last.Close || last.Body.Lookup("code").Int32() != 91 || last.Body.Lookup("errorLabels").String() != reply.Body.Lookup("errorLabels").String() {
			t.Errorf("%s on a connection that ends: %v", asked, last)
		}
	}
}

// A server that hands clients on learns from the replies who has logged in.
func TestIsLogin(t *testing.T) {
	for reply, want := range map[string]bool{
		"{conversationId: 1, done: false, ok: 1}":                 false,
		"{conversationId: 1, done: true, ok: 1}":                  true,
		"{dbname: '$external', user: 'CN=ann', ok: 1}":            true,
		"{speculativeAuthenticate: {done: false}, ok: 1}":         false,
		"{speculativeAuthenticate: {dbname: '$external'}, ok: 1}": true,
		"{isWritablePrimary: true, ok: 1}":                        false,
		"{ok: 0, code: 18}":                                       false,
	} {
		if isLogin(bson.MustDoc(reply)) != want {
			t.Errorf("%s: %t", reply, !want)
		}
	}
}
