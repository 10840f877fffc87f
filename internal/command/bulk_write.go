package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/query"
)

func bulkWriteCommands() []*Command {
	return []*Command{{Name: "bulkWrite", RawData: true, Needs: Needs{Also: needsBulkWrite}, AdminOnly: true, WriteConcern: true, Kind: "bulkWrite", Written: []string{"ops", "let"}, Sequences: []string{"ops", "nsInfo"}, Run: bulkWrite, Explain: explainBulkWrite,
		Doc: "Inserts, changes and removes documents of several collections."}}
}

// bulk is a bulkWrite under way.
type bulk struct {
	op      *Op
	ops     []bulkOp
	targets []bulkTarget
	ordered bool
	let     bson.Doc
	bypass  bool
	// keepTimestamps leaves empty timestamps as they are.
	keepTimestamps bool

	results    *bulkResults
	errorsOnly bool
	counts     bulkCounts
}

// bulkCounts are the totals of a reply.
type bulkCounts struct{ errors, inserted, matched, modified, upserted, deleted int64 }

// bulkTarget is one element of nsInfo.
type bulkTarget struct {
	ns       namespace.NS
	expected *query.Expected
}

func bulkWrite(op *Op) (bson.Doc, error) {
	b := &bulk{op: op, results: newBulkResults(op.Query.Memory)}
	cursor, err := b.parse(op.Args)
	if err != nil {
		return nil, err
	}
	if err := b.run(); err != nil {
		_ = b.results.Close()
		return nil, err
	}
	return b.reply(cursor)
}

func (b *bulk) parse(a *Args) (cursorOptions, error) {
	a.Ignore(b.op.Name())
	ops, opsGiven := b.op.Sequence("ops")
	targets, targetsGiven := b.op.Sequence("nsInfo")
	b.ordered = b.op.ordered()
	b.errorsOnly = a.Bool("errorsOnly", false)
	b.bypass = a.SafeBool("bypassDocumentValidation", false)
	b.keepTimestamps = a.SafeBool("bypassEmptyTsReplacement", false)
	b.let = a.Doc("let")
	cursor := a.simpleCursor()
	if !opsGiven {
		a.Required("ops")
	}
	if !targetsGiven {
		a.Required("nsInfo")
	}
	if err := a.Done(); err != nil {
		return cursor, err
	}
	if err := b.op.checkBatch(len(ops)); err != nil {
		return cursor, err
	}
	for _, d := range targets {
		t, err := parseBulkTarget(d, a.asKept)
		if err != nil {
			return cursor, err
		}
		if err := b.op.checkBulkTarget(t.ns); err != nil {
			return cursor, err
		}
		b.targets = append(b.targets, t)
	}
	return cursor, b.parseOps(ops)
}

// checkBulkTarget refuses a collection that no transaction writes. All other commands say their database themselves.
func (op *Op) checkBulkTarget(ns namespace.NS) error {
	if op.txn == nil {
		return nil
	}
	if err := checkStatementOn(ns); err != nil {
		return err
	}
	return op.checkSystemWrite(ns, systemWrite)
}

// parseBulkTarget reads an element of nsInfo; kept says what a command on that collection is about.
func parseBulkTarget(d bson.Doc, kept func(namespace.NS) namespace.NS) (t bulkTarget, err error) {
	a := NewArgs("bulkWrite.nsInfo", d)
	name, _ := a.String("ns")
	t.ns = kept(namespace.Split(string([]byte(name))))
	t.expected = a.collectionUUID(t.ns)
	a.noEncryption()
	a.Ignore("isTimeseriesNamespace", "shardVersion", "databaseVersion")
	switch err := a.Done(); {
	case err != nil:
		return t, err
	case !a.Has("ns"):
		a.Required("ns")
		return t, a.Err()
	case t.ns.Check() != nil:
		return t, mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified for bulkWrite: '%s'", t.ns)
	}
	return t, nil
}

// parseOps checks every op before the first is run. The statements are read again when their turn comes, so that a large
// bulkWrite holds no more than the message it came in.
func (b *bulk) parseOps(docs []bson.Doc) error {
	b.ops = make([]bulkOp, len(docs))
	a := &Args{}
	for i, d := range docs {
		o, err := parseBulkOp(a, d)
		if err != nil {
			return err
		}
		if o.target >= int64(len(b.targets)) {
			return mongoerr.New(mongoerr.BadValue, "BulkWrite ops entry %s has an invalid nsInfo index.", d)
		}
		switch o.kind {
		case bulkUpdate:
			_, err = b.update(o)
		case bulkDelete:
			_, err = b.delete(o)
		}
		if err != nil {
			return err
		}
		b.ops[i] = o
	}
	return nil
}

// run runs the ops. An error is one that ends all of it.
func (b *bulk) run() error {
	for i := 0; i < len(b.ops) && !b.stopped(); {
		if b.results.full() {
			b.fail(i, mongoerr.New(mongoerr.ExceededMemoryLimit, "BulkWrite response size exceeded limit (%d bytes)", maxBulkResultBytes))
			break
		}
		n, err := b.runFrom(i)
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

func (b *bulk) stopped() bool { return b.ordered && b.counts.errors > 0 }

// runFrom runs the i-th op and says how many it ran: inserts that follow one another into one collection are one.
func (b *bulk) runFrom(i int) (n int, err error) {
	o := b.ops[i]
	ns := b.targets[o.target].ns
	if o.kind == bulkInsert {
		if err := b.op.insertable(ns); err != nil { // which ends all of it
			return 0, err
		}
		return b.runInserts(i)
	}
	err = writable(ns)
	switch {
	case err != nil:
	case o.kind == bulkUpdate:
		err = b.runUpdate(i)
	default:
		err = b.runDelete(i)
	}
	if err != nil && !b.ends(err) {
		b.fail(i, err)
		err = nil
	}
	return 1, err
}

// ends says whether err ends the whole command and not one op. In a transaction what is told to run it again does: the reply has to say so,
// whichever results it has room for.
func (b *bulk) ends(err error) bool {
	return fatal(err) || b.op.txn != nil && b.op.isTransient(mongoerr.From(err).Code, 0)
}

func (b *bulk) runInserts(i int) (n int, err error) {
	var docs []bson.Doc
	for _, o := range b.ops[i:] {
		if o.kind != bulkInsert || o.target != b.ops[i].target {
			break
		}
		docs = append(docs, o.doc)
	}
	call := b.op.change()
	call.Statement = i
	call.Bypass, call.Let, call.KeepTimestamps, call.Expected = b.bypass, b.let, b.keepTimestamps, b.targets[b.ops[i].target].expected
	ns, began := b.targets[b.ops[i].target].ns, b.op.elapsed()
	inserted, refused, err := b.op.insertInto(ns, docs, b.ordered, call)
	b.op.statement("insert", ns, bson.Build().String("insert", ns.Coll).Bool("ordered", b.ordered).Doc(), began, err, nil,
		func(st *operation.Stats) { note(st, call); st.Inserted.Store(int64(inserted)) })
	b.op.examinedAlso(call)
	b.op.counts.inserts.Add(tried(len(docs), inserted, refused, b.ordered))
	b.counts.inserted += int64(inserted)
	if err == nil && len(refused) > 0 && b.ends(refused[0].Err) {
		err = refused[0].Err
	}
	if err != nil && b.ends(err) {
		return 0, err
	}
	done := inserted + len(refused)
	for k := range done {
		if len(refused) > 0 && refused[0].Index == k {
			b.fail(i+k, refused[0].Err)
			refused = refused[1:]
			continue
		}
		b.add(bulkResult{index: i + k, n: 1})
	}
	if err == nil {
		return len(docs), nil
	}
	for k := done; k < len(docs) && !b.stopped(); k++ {
		b.fail(i+k, err)
	}
	return len(docs), nil
}

func (b *bulk) runUpdate(i int) error {
	s, err := b.update(b.ops[i])
	if err == nil {
		err = b.checkRetry(s.Multi)
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return err
	}
	s.call.Statement = i
	done, err := b.op.update(&s)
	if err != nil {
		return err // what it has changed by then is not counted
	}
	b.counts.matched += done.Matched
	b.counts.modified += done.Modified
	r := bulkResult{index: i, kind: bulkUpdate, n: done.Matched, modified: done.Modified, upserted: done.UpsertedID}
	if !done.UpsertedID.IsMissing() {
		r.n = 1
		b.counts.upserted++
	}
	b.add(r)
	return nil
}

func (b *bulk) runDelete(i int) error {
	s, err := b.delete(b.ops[i])
	if err == nil {
		err = b.checkRetry(s.Multi)
	}
	if err != nil {
		return err
	}
	s.call.Statement = i
	n, err := b.op.delete(&s)
	if err != nil {
		return err
	}
	b.counts.deleted += n
	b.add(bulkResult{index: i, kind: bulkDelete, n: n})
	return nil
}

// checkRetry refuses an op on many documents in a write that may be sent again.
func (b *bulk) checkRetry(multi bool) error {
	if multi && b.op.retry != nil {
		return mongoerr.New(mongoerr.InvalidOptions, "Cannot use retryable writes with multi=true")
	}
	return nil
}

func (b *bulk) add(r bulkResult) {
	if !b.errorsOnly {
		b.results.add(r)
	}
}

func (b *bulk) fail(i int, err error) {
	b.counts.errors++
	b.results.add(bulkResult{index: i, kind: b.ops[i].kind, err: mongoerr.From(err)})
}

func (b *bulk) reply(o cursorOptions) (bson.Doc, error) {
	st, c := &b.op.Running.Stats, b.counts
	st.Inserted.Store(c.inserted)
	st.Matched.Store(c.matched)
	st.Modified.Store(c.modified)
	st.Upserted.Store(c.upserted)
	st.Deleted.Store(c.deleted)
	if b.op.WriteConcern.Unacknowledged { // whoever does not wait for the writes gets no results
		if err := b.results.Close(); err != nil {
			return nil, err
		}
		b.results.count = 0
	}
	if b.results.count == 0 || b.results.count <= o.batch && len(b.results.docs) < maxRowBytes {
		o.single = true
	}
	cursor, err := b.op.openCursor(namespace.NS{DB: "admin", Coll: "$cmd.bulkWrite"}, b.results, o)
	if err != nil {
		return nil, err
	}
	cursor = cursorOrdered(cursor, "id", "firstBatch", "ns")
	return bson.BuildOn(make([]byte, 0, len(cursor)+128)).Fields(cursor).Number("nErrors", c.errors).Number("nInserted", c.inserted).
		Number("nMatched", c.matched).Number("nModified", c.modified).Number("nUpserted", c.upserted).Number("nDeleted", c.deleted).Doc(), nil
}
