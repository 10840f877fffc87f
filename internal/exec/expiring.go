package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Expiring is the leaf of $ebbTTL. It walks the deadlines that each rule gives, side by side, and gives each document where its earliest
// is: what has several dates, or is about several rules, comes once. It is parked at deadlines, and goes on behind them in a later view.
type Expiring struct {
	op    *Op
	src   Source // nil: there is no such collection
	stage *pipeline.Expiring
	seen  *Examined
	turns *turns

	reader *storage.Reader // that it reads in; nil when it is parked
	walks  []*expiringWalk
	// had is where each rule's walk stood when it was parked, by the numbers of their indexes.
	had  map[uint32]*due.Place
	done bool
	doc  bson.Builder
}

// expiringWalk is the walk of one rule.
type expiringWalk struct {
	rule   *policy.Rule
	cursor *due.Cursor
	had    *due.Place // of the last entry that was looked at
	ended  bool
}

// OpenExpiring begins a walk of the documents of src, nil for none, by the deadlines that the stage is about.
func OpenExpiring(op *Op, src Source, stage *pipeline.Expiring, seen *Examined) *Expiring {
	return &Expiring{op: op, src: src, stage: stage, seen: seen, had: map[uint32]*due.Place{}, done: src == nil, turns: op.turns()}
}

// Next implements Iterator.
func (e *Expiring) Next(ctx context.Context) (bson.Doc, error) {
	for !e.done {
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		e.turns.step()
		if e.reader == nil {
			if err := e.open(ctx); err != nil {
				return nil, err
			}
		}
		w := e.earliest()
		if w == nil {
			e.done = true
			return nil, e.close()
		}
		doc, err := e.look(ctx, w)
		if doc != nil || err != nil {
			return doc, err
		}
	}
	return nil, nil
}

// open opens the walks, or takes them up where they were.
func (e *Expiring) open(ctx context.Context) (err error) {
	if e.reader, err = e.src.Reader(ctx); err != nil {
		return err
	}
	rules := e.reader.Rules().All()
	found := e.stage.Index == ""
	for i := range rules {
		rule := &rules[i]
		if e.stage.Index != "" && rule.Name() != e.stage.Index {
			continue
		}
		if found = true; rule.Kind == policy.Series {
			return mongoerr.New(mongoerr.CommandNotSupported, "the measurements of a time series lie in no order of deadlines: sort by %s instead of $ebbTTL", rule.Field())
		}
		w := &expiringWalk{rule: rule, had: e.had[rule.IndexID()]}
		if w.cursor, err = e.reader.Dates().Cursor(rule, e.stage.From, e.stage.Until, w.had); err != nil {
			return err
		}
		e.walks = append(e.walks, w)
		if err := w.move(); err != nil {
			return err
		}
	}
	if !found {
		return mongoerr.New(mongoerr.IndexNotFound, "no TTL index %s on %s gives documents a deadline", e.stage.Index, e.reader.Catalog().NS)
	}
	return nil
}

func (w *expiringWalk) move() error {
	there, err := w.cursor.Next()
	w.ended = !there
	return err
}

// earliest is the walk that stands at the earliest deadline; nil at the end of all.
func (e *Expiring) earliest() (first *expiringWalk) {
	for _, w := range e.walks {
		if !w.ended && (first == nil || w.cursor.Deadline() < first.cursor.Deadline()) {
			first = w
		}
	}
	return first
}

// look makes a document of the entry that the walk stands at, and moves on; nil where the entry is not what the document expires by.
func (e *Expiring) look(ctx context.Context, w *expiringWalk) (bson.Doc, error) {
	id, err := w.cursor.ID()
	if err != nil {
		return nil, err
	}
	e.seen.Keys++
	rec, ok, err := e.reader.Get(id)
	if err != nil {
		return nil, err
	}
	deadline, basis := w.cursor.Deadline(), w.cursor.Basis()
	var doc bson.Doc
	if ok {
		e.seen.Docs++
		if e.isBy(w.rule, rec, deadline) {
			doc = e.document(w.rule, rec.Doc, deadline, basis)
			err = e.op.carry(ctx, len(doc))
		}
	}
	w.had = w.cursor.Place()
	if moved := w.move(); err == nil {
		err = moved
	}
	return doc, err
}

// isBy says whether the deadline is the one that counts, and by the rule.
func (e *Expiring) isBy(rule *policy.Rule, rec storage.Record, deadline int64) bool {
	if e.stage.Index != "" {
		at, _ := rule.Deadline(rec.Doc, rec.Modified)
		return at == deadline
	}
	at, by := e.reader.Rules().Deadline(rec.Doc, rec.Modified)
	return at == deadline && by != nil && by.IndexID() == rule.IndexID()
}

func (e *Expiring) document(rule *policy.Rule, doc bson.Doc, deadline int64, basis string) bson.Doc {
	e.doc.Reset(e.doc.Buffer()[:0])
	b := e.doc.Date("deadline", deadline)
	if name := rule.Name(); name != "" {
		b.String("index", name)
	} else {
		b.Bool("clustered", true)
	}
	return b.String("field", rule.Field()).String("reason", basis).Bool("expired", deadline <= e.reader.View().Now()).Document("document", doc).Doc()
}

// Park implements Parker.
func (e *Expiring) Park() {
	e.turns.rest()
	for _, w := range e.walks {
		if w.had != nil {
			e.had[w.rule.IndexID()] = w.had
		}
	}
	_ = e.close() // a cursor that is given back early has nothing to say
	e.op.rest()
}

func (e *Expiring) close() (err error) {
	for _, w := range e.walks {
		if closed := w.cursor.Close(); err == nil {
			err = closed
		}
	}
	e.walks, e.reader = nil, nil
	return err
}

// Close implements Iterator.
func (e *Expiring) Close() error {
	e.Park()
	e.done = true
	return nil
}
