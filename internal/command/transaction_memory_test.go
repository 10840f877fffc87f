package command

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/memory"
)

// TestMemoryOfTransactions: what a transaction has written is counted until it ends, however it does, and a statement that there is no room for is refused.
func TestMemoryOfTransactions(t *testing.T) {
	const documentBytes, totalBytes = 1 << 20, 6 << 20
	h := member(t)
	h.server.Query.Memory = memory.New(totalBytes, h.clock, nil)
	used := func() int64 { return h.server.Query.Memory.Stats().By[memory.Transactions] }
	insert := func(documents int, n int64, starts bool) bson.Doc {
		b := bson.Build().String("insert", "c").Array("documents")
		for i := range documents {
			b.Object(bson.IndexKey(i)).String("pad", strings.Repeat("x", documentBytes)).End()
		}
		return h.txnDoc(t, "test", b.End().Doc(), n, starts)
	}
	ok := func(reply bson.Doc) {
		t.Helper()
		if !reply.Lookup("ok").Truthy() {
			t.Fatal(reply)
		}
	}
	for i, end := range []string{"{commitTransaction: 1}", "{abortTransaction: 1}"} {
		n := int64(i)
		ok(h.txn(t, "test", "{find: 'c', limit: 1, projection: {_id: 1}}", n, true))
		if used() != 0 {
			t.Errorf("one that has read takes %d bytes", used())
		}
		ok(insert(1, n, false))
		ok(insert(1, n, false))
		if used() < 2*documentBytes {
			t.Errorf("two documents take %d bytes", used())
		}
		ok(h.txn(t, "admin", end, n, false))
		if used() != 0 {
			t.Errorf("behind %s %d bytes are taken", end, used())
		}
	}
	ok(insert(1, 2, true))
	reply := insert(8, 2, false)
	if reply.Lookup("codeName").Text() != `"ExceededMemoryLimit"` || used() != 0 {
		t.Errorf("%d bytes are taken behind %s", used(), reply)
	}
	if reply := h.txn(t, "admin", "{commitTransaction: 1}", 2, false); reply.Lookup("codeName").Str() != "NoSuchTransaction" {
		t.Error(reply)
	}
}

// smallTransactions is an engine that takes no large transactions.
type smallTransactions struct {
	kv.Engine
	maxBytes int
}

func (e smallTransactions) Capabilities() kv.Capabilities {
	c := e.Engine.Capabilities()
	c.MaxTxnBytes = e.maxBytes
	return c
}

// TestSizeOfTransactions: a transaction takes less than half as many documents as the engine takes bytes, since the oplog has each once more.
func TestSizeOfTransactions(t *testing.T) {
	const documentBytes, maxBytes = 1 << 20, 16 << 20
	h := newMemberOn(t, func(e kv.Engine) kv.Engine { return smallTransactions{e, maxBytes} })
	h.ok(t, "admin", "{replSetInitiate: 1}")
	for n := range maxBytes / documentBytes {
		insert := bson.Build().String("insert", "c").Array("documents").Object("0").Int32("_id", int32(n)).String("pad", strings.Repeat("x", documentBytes)).End().End().Doc()
		reply := h.txnDoc(t, "test", insert, 0, n == 0)
		if reply.Lookup("ok").Truthy() {
			continue
		}
		if name := reply.Lookup("codeName").Str(); name != "TransactionTooLarge" || n < maxBytes/documentBytes/2-2 {
			t.Errorf("behind %d documents: %s", n, reply)
		}
		return
	}
	t.Error("it takes all of them")
}
