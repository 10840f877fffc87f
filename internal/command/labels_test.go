package command

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
)

// TestLabels: which errors of which commands a driver may answer by trying again.
func TestLabels(t *testing.T) {
	const none, transaction, write, resume, never = "", transientTransactionError, retryableWriteError, resumableChangeStreamError, nonResumableChangeStreamError
	stream := bson.MustDoc("{aggregate: 'c', pipeline: [{$changeStream: {}}]}")
	for name, c := range map[string]struct {
		op            Op
		command       bson.Doc
		code, concern mongoerr.Code
		want          string
	}{
		"a plain write":                               {code: mongoerr.NotWritablePrimary, want: none},
		"a write that may be sent again":              {op: Op{Generic: Generic{retryable: true}}, code: mongoerr.NotWritablePrimary, want: write},
		"one that has written nothing":                {op: Op{Generic: Generic{retryable: true}, ran: true, Conn: &Conn{hasWritten: true}}, code: mongoerr.NotWritablePrimary, want: write + " " + noWritesPerformed},
		"one that has written":                        {op: Op{Generic: Generic{retryable: true}, ran: true, Conn: &Conn{hasWritten: true}, committed: 7}, code: mongoerr.NotWritablePrimary, want: write},
		"the first of its connection":                 {op: Op{Generic: Generic{retryable: true}, ran: true, Conn: &Conn{}}, code: mongoerr.NotWritablePrimary, want: write},
		"one that was wrong":                          {op: Op{Generic: Generic{retryable: true}}, code: mongoerr.DuplicateKey, want: none},
		"one whose write concern met a shutdown":      {op: Op{Generic: Generic{retryable: true}}, concern: mongoerr.ShutdownInProgress, want: write},
		"one whose write concern cannot be met":       {op: Op{Generic: Generic{retryable: true}}, concern: mongoerr.UnsatisfiableWriteConcern, want: none},
		"a statement that met another's":              {op: Op{Generic: Generic{multi: true}}, code: mongoerr.WriteConflict, want: transaction},
		"a statement after a step-down":               {op: Op{Generic: Generic{multi: true}}, code: mongoerr.InterruptedDueToReplStateChange, want: transaction},
		"a statement that was wrong":                  {op: Op{Generic: Generic{multi: true}}, code: mongoerr.DuplicateKey, want: none},
		"a statement of none":                         {op: Op{Generic: Generic{multi: true}}, code: mongoerr.NoSuchTransaction, want: transaction},
		"a commit of none":                            {op: Op{Generic: Generic{multi: true}}, command: bson.MustDoc("{commitTransaction: 1}"), code: mongoerr.NoSuchTransaction, want: transaction},
		"a commit of none, whose concern was not met": {op: Op{Generic: Generic{multi: true}}, command: bson.MustDoc("{commitTransaction: 1}"), code: mongoerr.NoSuchTransaction, concern: mongoerr.WriteConcernTimeout, want: none},
		"a commit after a step-down":                  {op: Op{Generic: Generic{multi: true}}, command: bson.MustDoc("{commitTransaction: 1}"), code: mongoerr.PrimarySteppedDown, want: write},
		"an abort after a step-down":                  {op: Op{Generic: Generic{multi: true}}, command: bson.MustDoc("{abortTransaction: 1}"), code: mongoerr.PrimarySteppedDown, want: write},
		"a commit that met another's":                 {op: Op{Generic: Generic{multi: true}}, command: bson.MustDoc("{commitTransaction: 1}"), code: mongoerr.WriteConflict, want: transaction},
		"a stream that is opened":                     {command: stream, code: mongoerr.NotWritablePrimary, want: resume},
		"another aggregation":                         {command: bson.MustDoc("{aggregate: 'c', pipeline: [{$match: {}}]}"), code: mongoerr.NotWritablePrimary, want: none},
		"a stream's next batch":                       {op: Op{originating: stream}, command: bson.MustDoc("{getMore: {$numberLong: '1'}}"), code: mongoerr.RetryChangeStream, want: resume},
		"another cursor's next batch":                 {op: Op{originating: bson.MustDoc("{find: 'c'}")}, command: bson.MustDoc("{getMore: {$numberLong: '1'}}"), code: mongoerr.RetryChangeStream, want: none},
		"a stream whose history is gone":              {op: Op{originating: stream}, command: bson.MustDoc("{getMore: {$numberLong: '1'}}"), code: mongoerr.ChangeStreamHistoryLost, want: never},
	} {
		if c.command == nil {
			c.command = bson.MustDoc("{insert: 'c'}")
		}
		c.op.Server, c.op.Args = &Server{Replica: &replset.Node{}}, NewArgs("", c.command)
		c.op.Command = &Command{Name: c.command.FirstKey()}
		if got := strings.Join(c.op.labels(c.code, c.concern), " "); got != c.want {
			t.Errorf("%s: labelled %q, want %q", name, got, c.want)
		}
		c.op.Server = &Server{}
		if got := c.op.labels(c.code, c.concern); got != nil {
			t.Errorf("%s: a standalone labels it %q", name, got)
		}
	}
}
