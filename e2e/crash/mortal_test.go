package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// mortalDoc is a document that may expire: by d, or by its last modification and ttl.
type mortalDoc struct {
	ID   string `bson:"_id"`
	U    string
	W    int32 // the writer
	V    int32 // the version
	List []int32
	D    time.Time `bson:"d,omitempty"`
	TTL  int32     `bson:"ttl,omitempty"`
}

// life is one version of a document, and when it began: between two moments, of which the client knows.
type life struct {
	doc         mortalDoc
	sent, known time.Time
}

// book is what a writer knows of one document.
type book struct {
	now  *life // acknowledged; nil when it may not be there
	next *life // sent and not answered
	// dying: a delete was sent and not answered.
	dying bool
}

// mortal writes to one collection, under ids and keys that nobody else uses.
type mortal struct {
	number int
	coll   string
	tides  bool // many documents come and expire together
	random *rand.Rand
	made   int
	books  map[string]*book
	// gone are the ids of documents that were deleted, or that were not there when they might have expired.
	gone map[string]bool

	acknowledged int
	problems     []string
}

func newMortal(number int, random *rand.Rand) *mortal {
	m := &mortal{number: number, coll: []string{dated, sliding}[number%2], random: random, books: map[string]*book{}, gone: map[string]bool{}}
	if tide := number - mortals; tide >= 0 {
		m.tides, m.coll = true, mortalColls[tide]
	}
	return m
}

func ownerOf(load []*mortal, d mortalDoc) *mortal {
	if d.W < 0 {
		return &mortal{}
	}
	return load[d.W]
}

// endless is when what does not expire does.
var endless = time.Unix(1<<36, 0)

// earliest is when the document may be gone first, by any rule there is at times.
func (l *life) earliest(coll string) time.Time {
	const rounding = time.Millisecond
	switch {
	case coll != sliding && l.doc.D.IsZero(), coll == sliding && l.doc.TTL == -1:
		return endless
	case coll != sliding:
		return l.doc.D.Add(shortest * time.Second)
	case l.doc.TTL > 0:
		return l.sent.Add(time.Duration(l.doc.TTL)*time.Second - rounding)
	}
	return l.sent.Add(shortest*time.Second - rounding)
}

// latest is from when on nobody can see the document, since a rule hides it. Those on dates may not hide, or not be there.
func (l *life) latest(coll string) time.Time {
	switch {
	case coll != sliding, l.doc.TTL == -1:
		return endless
	case l.doc.TTL > 0:
		return l.known.Add(time.Duration(l.doc.TTL) * time.Second)
	}
	return l.known.Add(longest * time.Second)
}

func (m *mortal) run(ctx context.Context, c *mongo.Collection) {
	for ctx.Err() == nil {
		var err error
		switch dice := m.random.IntN(20); {
		case m.tides && dice < 12 && len(m.books) < maxTide:
			err = m.tide(ctx, c)
		case dice < 7 && len(m.books) < maxBooked && m.coll != flooded: // where everything goes at once
			err = m.insert(ctx, c)
		case dice < 15 && m.coll != flooded:
			err = m.update(ctx, c)
		case dice < 18:
			err = m.remove(ctx, c)
		default:
			err = m.read(ctx, c)
		}
		if err != nil {
			m.note(err)
			return
		}
		m.acknowledged++
	}
}

func (m *mortal) note(err error) {
	if isRefusal(err) {
		m.problem("the server refused: %v", err)
	}
}

func (m *mortal) problem(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

// fate is when a document expires: soon, late, never, or some time ago.
func (m *mortal) fate(d *mortalDoc) {
	d.D, d.TTL = time.Time{}, 0
	now := time.Now().Truncate(time.Millisecond)
	switch dice := m.random.IntN(10); {
	case dice < 5:
		d.D = now.Add(time.Duration(m.random.IntN(2000)) * time.Millisecond)
		d.TTL = int32(m.random.IntN(2))
	case dice < 7:
		d.D, d.TTL = now.Add(time.Hour), 3600
	case dice < 9:
		d.TTL = -1
	default:
		d.D = now.Add(-time.Hour)
	}
}

func (m *mortal) fresh() mortalDoc {
	m.made++
	d := mortalDoc{ID: fmt.Sprintf("%d-%06d", m.number, m.made), W: int32(m.number), List: []int32{m.random.Int32(), m.random.Int32N(100)}}
	d.U = d.ID
	m.fate(&d)
	return d
}

func (m *mortal) insert(ctx context.Context, c *mongo.Collection) error {
	var docs []mortalDoc
	sent := time.Now()
	many := 1 + m.random.IntN(2*batch)
	if m.random.IntN(5) == 0 {
		many *= batch
	}
	for range many {
		d := m.fresh()
		if m.coll == sliding {
			m.inherit(&d, sent)
		}
		docs = append(docs, d)
	}
	return m.send(ctx, c, docs)
}

const (
	// leastTide is how many documents expire together at least: more than are deleted one by one.
	leastTide = 300
	maxTide   = 2000
	// ebb is how often everything in flooded expires.
	ebb = 400 * time.Millisecond
)

// tide inserts documents that expire at the same moment, or have a moment ago.
func (m *mortal) tide(ctx context.Context, c *mongo.Collection) error {
	due := time.Now().Truncate(time.Millisecond).Add(time.Duration(m.random.IntN(2000)-2000) * time.Millisecond)
	if m.coll == flooded { // all of a while together, so that nothing is left
		due = time.Now().Truncate(ebb).Add(ebb - shortest*time.Second)
	}
	ttl := int32(m.random.IntN(2))
	docs := make([]mortalDoc, leastTide+m.random.IntN(leastTide))
	for i := range docs {
		docs[i] = m.fresh()
		docs[i].D, docs[i].TTL = due, ttl
	}
	return m.send(ctx, c, docs)
}

// send inserts documents and keeps book of them.
func (m *mortal) send(ctx context.Context, c *mongo.Collection, docs []mortalDoc) error {
	var lives []*life
	sent := time.Now()
	for _, d := range docs {
		l := &life{doc: d, sent: sent}
		m.books[d.ID] = &book{next: l}
		lives = append(lives, l)
	}
	if _, err := c.InsertMany(ctx, docs, options.InsertMany().SetOrdered(m.random.IntN(2) == 0)); err != nil {
		return err
	}
	for _, l := range lives {
		l.known = time.Now()
		m.books[l.doc.ID] = &book{now: l}
	}
	return nil
}

// inherit takes the unique key of a document that nobody can see any more.
func (m *mortal) inherit(d *mortalDoc, now time.Time) {
	for id, b := range m.books { // any will do
		if b.now != nil && !now.Before(b.now.latest(m.coll)) {
			d.U = b.now.doc.U
			delete(m.books, id)
			m.gone[id] = true
			return
		}
	}
}

// update begins another life. It finds nothing when the document may have expired.
func (m *mortal) update(ctx context.Context, c *mongo.Collection) error {
	id, b := m.pick()
	if b == nil {
		return nil
	}
	d := b.now.doc
	d.V++
	d.List = []int32{m.random.Int32N(100)}
	m.fate(&d)
	b.next = &life{doc: d, sent: time.Now()}
	n, err := m.change(ctx, c, d)
	if err != nil {
		return err
	}
	b.next.known = time.Now()
	if n == 1 {
		b.now, b.next = b.next, nil
		return nil
	}
	b.next = nil
	m.missed(id, b, time.Now(), "an update")
	return nil
}

func (m *mortal) change(ctx context.Context, c *mongo.Collection, d mortalDoc) (int64, error) {
	if m.random.IntN(3) == 0 {
		r, err := c.ReplaceOne(ctx, bson.D{{Key: "_id", Value: d.ID}}, d)
		if err != nil {
			return 0, err
		}
		return r.MatchedCount, nil
	}
	set, unset := bson.D{{Key: "v", Value: d.V}, {Key: "list", Value: d.List}}, bson.D{{Key: "none", Value: 1}}
	if d.D.IsZero() {
		unset = append(unset, bson.E{Key: "d", Value: 1})
	} else {
		set = append(set, bson.E{Key: "d", Value: d.D})
	}
	if d.TTL == 0 {
		unset = append(unset, bson.E{Key: "ttl", Value: 1})
	} else {
		set = append(set, bson.E{Key: "ttl", Value: d.TTL})
	}
	r, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: d.ID}}, bson.D{{Key: "$set", Value: set}, {Key: "$unset", Value: unset}})
	if err != nil {
		return 0, err
	}
	return r.MatchedCount, nil
}

func (m *mortal) remove(ctx context.Context, c *mongo.Collection) error {
	id, b := m.pick()
	if b == nil {
		return nil
	}
	b.dying = true
	r, err := c.DeleteOne(ctx, bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return err
	}
	b.dying = false
	if r.DeletedCount == 0 {
		m.missed(id, b, time.Now(), "a delete")
		return nil
	}
	delete(m.books, id)
	m.gone[id] = true
	return nil
}

// missed takes note that the document was not there.
func (m *mortal) missed(id string, b *book, at time.Time, by string) {
	if at.Before(b.now.earliest(m.coll)) {
		m.problem("%s does not find %s, which cannot have expired: %+v", by, id, b.now)
	}
	delete(m.books, id)
	m.gone[id] = true
}

// read looks at all of one's own, in some order.
func (m *mortal) read(ctx context.Context, c *mongo.Collection) error {
	hint := ways()[m.random.IntN(len(ways()))]
	began := time.Now()
	cursor, err := c.Find(ctx, bson.D{{Key: "w", Value: m.number}}, options.Find().SetHint(hint).SetBatchSize(int32(20+m.random.IntN(500))))
	if err != nil {
		return err
	}
	var docs []mortalDoc
	if err := cursor.All(ctx, &docs); err != nil {
		return err
	}
	found := map[string]mortalDoc{}
	for _, d := range docs {
		if _, twice := found[d.ID]; twice {
			m.problem("%s came twice by %v", d.ID, hint)
		}
		found[d.ID] = d
	}
	for _, p := range m.compare(found, began, time.Now(), rule{}, false) {
		m.problem("by %v: %s", hint, p)
	}
	return nil
}

func (m *mortal) pick() (string, *book) {
	ids := make([]string, 0, len(m.books))
	for id := range m.books {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return "", nil
	}
	slices.Sort(ids) // a map's order would not follow the seed
	id := ids[m.random.IntN(len(ids))]
	return id, m.books[id]
}

// diedAt is told when the server was dead: what was not answered has happened before, or never.
func (m *mortal) diedAt(moment time.Time) {
	for _, b := range m.books {
		if b.next != nil {
			b.next.known = moment
		}
	}
}

// compare says what is wrong with what was found between two moments under a rule that holds all the time, and brings the
// books up to date. After a restart, a sweep that was not on disk yet may have to be done again.
func (m *mortal) compare(found map[string]mortalDoc, began, ended time.Time, r rule, restarted bool) (problems []string) {
	for id, b := range m.books {
		d, there := found[id]
		if !there {
			if p := m.notFound(id, b, ended); p != "" {
				problems = append(problems, p)
			}
			continue
		}
		l := b.lifeOf(d)
		switch {
		case l == nil:
			problems = append(problems, fmt.Sprintf("%+v is not what was written: %v", d, b))
			l = &life{doc: d, sent: began, known: ended}
		case !began.Before(l.latest(m.coll)), r.hides && r.expires(d, began):
			problems = append(problems, fmt.Sprintf("%+v can be seen %v after its life of %+v", d, began.Sub(l.known), l))
		}
		b.now, b.next, b.dying = l, nil, false
	}
	for id := range found {
		if d := found[id]; m.gone[id] && int(d.W) == m.number && !(r.there && !r.hides && r.expires(d, began)) {
			problems = append(problems, fmt.Sprintf("%+v is back", d))
		}
	}
	return problems
}

// notFound takes note of a document that is not there, and says if it should.
func (m *mortal) notFound(id string, b *book, at time.Time) (problem string) {
	if b.now != nil && !b.dying && at.Before(b.now.earliest(m.coll)) && (b.next == nil || at.Before(b.next.earliest(m.coll))) {
		problem = fmt.Sprintf("lost: %+v", b.now)
	}
	delete(m.books, id)
	m.gone[id] = true
	return problem
}

// lifeOf is which version was found.
func (b *book) lifeOf(d mortalDoc) *life {
	for _, l := range []*life{b.now, b.next} {
		if l != nil && l.doc.V == d.V && l.doc.U == d.U && slices.Equal(l.doc.List, d.List) && l.doc.D.Equal(d.D) && l.doc.TTL == d.TTL {
			return l
		}
	}
	return nil
}
