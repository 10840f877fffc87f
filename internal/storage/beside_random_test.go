package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestRandomBesideTransactions has two transactions of several statements, plain writers, sweeps, vacuums and time do things at random to one
// collection, one thing at a time, and compares with a naive model: what everybody sees and what each transaction sees, which statement
// meets a conflict and which does not, how many documents are counted and stored. A transaction whose statements met none commits.
func TestRandomBesideTransactions(t *testing.T) {
	seed := testseed.Of(t)
	eachSweptWay(t, func(t *testing.T, s *sweptBeside, id func(int) string) {
		for round := range uint64(2) {
			m := &besideModel{sweptBeside: s, random: rand.New(rand.NewPCG(seed, round)), seed: seed, id: id, keys: []int{5, 30}[round%2], inserted: map[int]int{}}
			m.begin()
			for range 250 {
				m.step()
				m.compare()
			}
			m.end()
		}
	})
}

// modelDocument is a document, as it has been since a commit; deadline and u are what it says.
type modelDocument struct {
	n        int
	deadline int64
	written  int // the number of the commit
}

// besideModel is the naive truth of a sweptBeside. A document's key is its u.
type besideModel struct {
	*sweptBeside
	random   *rand.Rand
	seed     uint64
	id       func(int) string
	docs     map[int]modelDocument
	inserted map[int]int // the commit that has inserted a key last
	commits  int
	vacuumed int // when a vacuum was last
	keys     int
	open     [2]*modelTransaction
	log      []string
}

// modelTransaction is one that is open.
type modelTransaction struct {
	*Txn
	began int
	now   int64
	docs  map[int]modelDocument // as they were when it began, and it has made them since
	wrote map[int]bool
	// inserted are the keys that it has taken, also those that it has deleted again.
	inserted map[int]bool
}

func (m *besideModel) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("seed %d: %s\n%s", m.seed, fmt.Sprintf(format, args...), strings.Join(m.log[max(0, len(m.log)-30):], "\n"))
}

func (m *besideModel) say(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf("%d: ", m.Now()-epoch.UnixMilli())+fmt.Sprintf(format, args...))
}

// begin takes over what is there.
func (m *besideModel) begin() {
	m.Bounds().MostTold = 7
	for key := range 30 {
		m.check("delete", m.plain(func(w *Writer) error {
			rec, there, err := w.Unhidden().GetByID(m.value(key))
			if err != nil || !there {
				return err
			}
			return w.Delete(rec.Clone())
		}))
	}
	m.docs = map[int]modelDocument{}
}

func (m *besideModel) value(key int) bson.Value {
	return bson.MustDoc("{_id: " + m.id(key) + "}").Lookup("_id")
}

// hides says whether what has expired at a time is hidden then.
func (m *besideModel) hides() bool {
	rule := m.tested().order.Rule
	return rule.Hides(false)
}

func (m *besideModel) isHidden(d modelDocument, at int64) bool { return m.hides() && d.deadline <= at }

// deadlineOf is that of a document which is written now by one whose time is at, with a date.
func (m *besideModel) deadlineOf(key int, date, at int64) int64 {
	switch rule := m.tested().order.Rule; {
	case rule.Index == nil:
		return m.value(key).Millis() + 10_000
	case rule.Field() == "_ts":
		return at + 10_000
	default:
		return date + 10_000
	}
}

// document is a new version of one.
func (m *besideModel) document(key, n int, at int64) (bson.Doc, modelDocument) {
	date := at - int64(m.random.IntN(12_000))
	doc := bson.MustDoc(fmt.Sprintf("{_id: %s, d: new Date(%d), a: %d, u: %d, n: %d}", m.id(key), date, key%3, key, n))
	return doc, modelDocument{n: n, deadline: m.deadlineOf(key, date, at)}
}

func (m *besideModel) plain(f func(*Writer) error) error {
	return m.Write(context.Background(), testNS, WriteOptions{Durability: kv.Buffered, PassesOver: true}, f)
}

func (m *besideModel) check(what string, err error) {
	m.t.Helper()
	if err != nil {
		m.fatalf("%s: %v", what, err)
	}
}

func (m *besideModel) step() {
	i := m.random.IntN(len(m.open))
	t := m.open[i]
	switch p := m.random.IntN(100); {
	case p < 30:
		m.write(nil)
	case p < 45:
		m.clock.Advance(time.Duration(m.random.IntN(3000)) * time.Millisecond)
	case p < 60:
		m.expire()
	case p < 65:
		m.vacuum()
	case t == nil:
		m.beginTransaction(i)
	case p < 90:
		if !m.write(t) {
			m.say("transaction %d is over", i)
			t.Rollback()
			m.open[i] = nil
		}
	case p < 96:
		m.say("transaction %d commits", i)
		m.check("commit", t.Commit(context.Background(), kv.Buffered))
		m.commits++
		for key := range t.inserted {
			m.inserted[key] = m.commits
		}
		for key := range t.wrote {
			d, there := t.docs[key]
			if !there {
				delete(m.docs, key)
				continue
			}
			d.written = m.commits
			m.docs[key] = d
		}
		m.open[i] = nil
	default:
		m.say("transaction %d aborts", i)
		t.Rollback()
		m.open[i] = nil
	}
}

func (m *besideModel) beginTransaction(i int) {
	m.say("transaction %d begins", i)
	m.open[i] = &modelTransaction{Txn: m.fixture.beginTransaction(), began: m.commits, now: m.Now(), docs: maps.Clone(m.docs), wrote: map[int]bool{}, inserted: map[int]bool{}}
}

// holder is the open transaction that has written a key.
func (m *besideModel) holder(key int) *modelTransaction {
	for _, t := range m.open {
		if t != nil && t.wrote[key] {
			return t
		}
	}
	return nil
}

// write does something to one document, in a transaction or alone. It says whether the transaction may go on.
func (m *besideModel) write(t *modelTransaction) bool {
	key, at, docs, who := m.random.IntN(m.keys), m.Now(), m.docs, "somebody"
	run := m.plain
	if t != nil {
		at, docs, who = t.now, t.docs, "a transaction"
		run = func(f func(*Writer) error) error { return t.Write(context.Background(), testNS, WriteOptions{}, f) }
	}
	old, there := docs[key]
	visible := there && !m.isHidden(old, at)
	// A conflict is what somebody else has written since, or is writing, or a sweep has deleted.
	holder := m.holder(key)
	conflicts := holder != nil && holder != t
	mayConflict := false
	if t != nil && !t.wrote[key] {
		now, isThere := m.docs[key]
		conflicts = conflicts || there && (!isThere || now.written > t.began) || !there && m.inserted[key] > t.began
		mayConflict = m.vacuumed > 0 && m.vacuumed >= t.began // which claims the keys of dead entries
	}
	op := m.random.IntN(3)
	switch {
	case !visible && op > 0: // nothing is found
		m.say("%s does not find %d", who, key)
		m.check("look", run(func(w *Writer) error {
			if rec, found, err := w.GetByID(m.value(key)); found || err != nil {
				return fmt.Errorf("%s is there, %w", rec.Doc, err)
			}
			return nil
		}))
		return true
	case visible && op == 0:
		m.say("%s inserts %d again", who, key)
		doc, _ := m.document(key, 0, at)
		err := run(func(w *Writer) error { _, err := w.Insert(doc); return err })
		if !mongoerr.Is(err, mongoerr.DuplicateKey) {
			m.fatalf("%s inserts %d again: %v", who, key, err)
		}
		return t == nil
	}
	doc, next := m.document(key, old.n+1, at)
	var err error
	switch op {
	case 0:
		doc, next = m.document(key, 1, at)
		err = run(func(w *Writer) error { _, err := w.Insert(doc); return err })
	case 1:
		err = run(func(w *Writer) error {
			rec, found, err := w.GetByID(m.value(key))
			if err != nil || !found || int(rec.Doc.Lookup("n").Int32()) != old.n {
				return fmt.Errorf("found %v %s, want %d: %w", found, rec.Doc, old.n, err)
			}
			_, _, err = w.Update(rec.Clone(), doc)
			return err
		})
	default:
		err = run(func(w *Writer) error {
			rec, found, err := w.GetByID(m.value(key))
			if err != nil || !found {
				return fmt.Errorf("found %v: %w", found, err)
			}
			return w.Delete(rec.Clone())
		})
	}
	m.say("%s writes %d, %s: %v", who, key, []string{"inserted", "updated", "deleted"}[op], err)
	switch isConflict := mongoerr.Is(err, mongoerr.WriteConflict); {
	case err != nil && !isConflict, isConflict && !conflicts && !mayConflict, !isConflict && conflicts:
		m.fatalf("%s writes %d: %v, and a conflict is %v", who, key, err, conflicts)
	case isConflict:
		return false
	}
	if t != nil {
		t.wrote[key] = true
		delete(docs, key)
	} else {
		m.commits++
		next.written = m.commits
		delete(docs, key)
	}
	if op < 2 {
		docs[key] = next
	}
	switch {
	case op == 0 && t == nil:
		m.inserted[key] = m.commits
	case op == 0:
		t.inserted[key] = true
	}
	return true
}

// expire deletes what is due, at once as far as that can be and then one by one, or one by one alone; what transactions have written stays.
func (m *besideModel) expire() {
	c := m.tested()
	now := m.Now()
	swept := int64(0)
	if m.random.IntN(4) > 0 {
		swept = m.sweep()
	}
	all := []bool{true, false}[m.random.IntN(2)] || swept == 0
	single := 0
	if all {
		m.check("expire", m.Write(context.Background(), testNS, WriteOptions{Durability: kv.Buffered, PassesOver: true}, func(w *Writer) error {
			single = 0
			ids, _, err := w.Dates().All(c.order.Rule, now, nil, 1000)
			if err != nil {
				return err
			}
			return w.ExpireMany(c.order.Rule, ids, func(_ Record, gone bool) bool {
				if gone {
					single++
				}
				return true
			})
		}))
	}
	due := 0
	for key, d := range m.docs {
		if d.deadline <= now && m.holder(key) == nil {
			due++
			delete(m.docs, key)
		}
	}
	m.say("%d were swept and %d deleted of %d", swept, single, due)
	if all && int(swept)+single != due {
		m.fatalf("%d were swept and %d deleted, of %d that are due", swept, single, due)
	}
	if !all && int(swept) != due { // in coarse places some are left
		m.check("expire", m.Write(context.Background(), testNS, WriteOptions{Durability: kv.Buffered, PassesOver: true}, func(w *Writer) error {
			ids, _, err := w.Dates().All(c.order.Rule, now, nil, 1000)
			if err != nil {
				return err
			}
			return w.ExpireMany(c.order.Rule, ids, func(_ Record, gone bool) bool {
				if gone {
					swept++
				}
				return true
			})
		}))
		if int(swept) != due {
			m.fatalf("%d were swept of %d that are due", swept, due)
		}
	}
	m.commits++
}

func (m *besideModel) vacuum() {
	m.say("vacuum")
	m.commits++
	m.vacuumed = m.commits
	for more := true; more; {
		var err error
		_, more, err = m.Vacuum(context.Background(), m.tested().ID, 1+m.random.IntN(20))
		m.check("vacuum", err)
		more = more && m.random.IntN(3) > 0
	}
}

// compare compares what everybody sees.
func (m *besideModel) compare() {
	m.t.Helper()
	view, err := m.View(context.Background())
	m.check("view", err)
	m.compareView("everybody", view, m.docs, m.Now())
	stored, err := view.read(m.tested()).Stored()
	m.check("count", errors.Join(err, view.Close()))
	if stored != int64(len(m.docs)) {
		m.fatalf("%d documents are stored, want %d", stored, len(m.docs))
	}
	for i, t := range m.open {
		if t != nil {
			m.compareView(fmt.Sprint("transaction ", i), t.Statement(context.Background()), t.docs, t.now)
		}
	}
	if m.random.IntN(3) == 0 {
		m.validate(testNS)
	}
}

func (m *besideModel) compareView(who string, v *View, docs map[int]modelDocument, at int64) {
	m.t.Helper()
	var want []int
	for key, d := range docs {
		if !m.isHidden(d, at) {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	if got := m.numbers(v); fmt.Sprint(got) != fmt.Sprint(want) {
		m.fatalf("%s sees %v, want %v", who, got, want)
	}
	if m.t.Failed() {
		m.fatalf("%s sees what it should not", who)
	}
	r, _ := v.Collection(testNS)
	for _, key := range want {
		if rec, there, err := r.GetByID(m.value(key)); err != nil || !there || int(rec.Doc.Lookup("n").Int32()) != docs[key].n {
			m.fatalf("%s sees %s, want n: %d, %v", who, rec.Doc, docs[key].n, err)
		}
	}
}

// end ends all, and looks whether what was passed over is told of.
func (m *besideModel) end() {
	for i, t := range m.open {
		if t != nil {
			t.Rollback()
			m.open[i] = nil
		}
	}
	m.compare()
	m.expire()
	m.compare()
	m.vacuumed = 0
	for more := true; more; {
		var err error
		_, more, err = m.Vacuum(context.Background(), m.tested().ID, 100)
		m.check("vacuum", err)
	}
	m.validate(testNS)
	m.wantHistogram()
	m.reopen()
	m.compare()
}
