package ttl_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

var modelSeed = flag.Uint64("ttl.seed", 0, "the seed of one run of TestModel, 0 for many")

// TestModel does things at random to a collection with three TTL indexes while time moves, and compares with a naive list
// of documents. Half of the runs let the monitor run, and then nothing that has expired may be stored whenever it sleeps;
// the others sweep when it pleases them, and then what is hidden must be hidden.
func TestModel(t *testing.T) {
	seeds := []uint64{*modelSeed}
	if *modelSeed == 0 {
		seeds = []uint64{1, 2, 3, 4, rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64()}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &model{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), world: newWorld(t), runs: seed%2 == 0}
			m.world.visits = false
			m.begin()
			for step := range 600 {
				m.step(step)
				m.check()
			}
			v, err := m.world.store.Validate(context.Background(), m.ns, nil)
			if err != nil || !v.Valid {
				m.fatalf("validate: %+v, %v", v, err)
			}
		})
	}
}

// model is the naive truth.
type model struct {
	t     *testing.T
	seed  uint64
	rand  *rand.Rand
	world *world
	ns    namespace.NS
	runs  bool // the monitor's loop does
	docs  []*modelDoc
	rules map[string]*modelRule
	all   bool // ttlHideExpired
	// high is the latest time there was: what was hidden then stays hidden when the clock is turned back a little.
	high int64
	// hold is where the clock of expiry stands still, 0 when it goes on; untrusted, until when, by monotonic time, the wall time
	// is not believed.
	hold      int64
	untrusted time.Duration
	log       []string
}

type modelDoc struct {
	id       int
	text     string
	unique   int
	fields   map[string][]int64 // the dates in d and e
	ttl      int64              // 0 for none that is valid
	modified int64
}

type modelRule struct {
	seconds int64
	hides   bool
	// What was due at a time, when the TTL was made shorter, is kept until another.
	at, until int64
}

func (m *model) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("seed %d: %s\n%s", m.seed, fmt.Sprintf(format, args...), strings.Join(m.log[max(0, len(m.log)-40):], "\n"))
}

func (m *model) now() int64 { return m.world.clock.Now().UnixMilli() }

// do runs a script line; an error other than a duplicate key ends the test.
func (m *model) do(format string, args ...any) (duplicate bool) {
	line := fmt.Sprintf(format, args...)
	m.log = append(m.log, fmt.Sprintf("%d: %s", m.now()-zero.UnixMilli(), line))
	verb, rest := first(line)
	err := m.world.do(verb, rest, rest)
	if err != nil && !mongoerr.Is(err, mongoerr.DuplicateKey) {
		m.fatalf("%v", err)
	}
	return err != nil
}

func (m *model) begin() {
	m.ns = namespace.NS{DB: "db", Coll: "c"}
	m.rules = map[string]*modelRule{"d": {seconds: 10}, "e": {seconds: 0, hides: true}, "_ts": {seconds: 20, hides: true}}
	m.do(`index c {key: {d: 1}, name: "d", expireAfterSeconds: 10}`)
	m.do(`index c {key: {e: -1}, name: "e", expireAfterSeconds: 0, hideExpired: true}`)
	m.do(`index c {key: {_ts: 1}, name: "_ts", expireAfterSeconds: 20}`)
	m.do(`index c {key: {u: 1}, name: "u", unique: true, sparse: true}`)
	if m.runs {
		m.do("start")
	}
}

// deadline is when a document expires by a rule, said as plainly as can be.
func (m *model) deadline(d *modelDoc, name string) int64 {
	rule := m.rules[name]
	if rule == nil {
		return math.MaxInt64
	}
	if name != "_ts" {
		if len(d.fields[name]) == 0 {
			return math.MaxInt64
		}
		return slices.Min(d.fields[name]) + rule.seconds*1000
	}
	switch {
	case d.ttl == -1, d.ttl == 0 && rule.seconds == -1:
		return math.MaxInt64
	case d.ttl > 0:
		return d.modified + d.ttl*1000
	}
	return d.modified + rule.seconds*1000
}

func (m *model) expired(d *modelDoc, name string) bool { return m.deadline(d, name) <= m.now() }

func (m *model) hiding() int64 {
	at := max(m.now(), m.high)
	if m.hold != 0 {
		at = min(at, m.hold)
	}
	return at
}

// held says whether nothing is deleted, whatever is due.
func (m *model) held() bool { return m.hold != 0 || m.doubted() }

func (m *model) doubted() bool { return clock.Monotonic(m.world.clock) < m.untrusted }

// doubt has the wall time not believed from now on.
func (m *model) doubt() { m.untrusted = clock.Monotonic(m.world.clock) + time.Minute }

// goes says whether the monitor deletes the document because of a rule.
func (m *model) goes(d *modelDoc, name string) bool {
	rule := m.rules[name]
	return m.expired(d, name) && !(m.now() < rule.until && m.deadline(d, name) <= rule.at)
}

func (m *model) hidden(d *modelDoc) bool {
	for name, rule := range m.rules {
		if (rule.hides || m.all) && m.deadline(d, name) <= m.hiding() {
			return true
		}
	}
	return false
}

// drop removes what is not kept.
func (m *model) keep(f func(*modelDoc) bool) {
	m.docs = slices.DeleteFunc(m.docs, func(d *modelDoc) bool { return !f(d) })
}

func (m *model) sweep() {
	if m.held() {
		return
	}
	m.keep(func(d *modelDoc) bool { return !m.goes(d, "d") && !m.goes(d, "e") && !m.goes(d, "_ts") })
}

// make is a random document.
func (m *model) make(id int) *modelDoc {
	d := &modelDoc{id: id, fields: map[string][]int64{}, modified: max(m.now(), m.high), unique: -1}
	b := fmt.Sprintf("{_id: %d", id)
	for _, name := range []string{"d", "e"} {
		b += m.value(d, name)
	}
	if m.rand.IntN(3) == 0 {
		d.unique = m.rand.IntN(8)
		b += fmt.Sprintf(", u: %d", d.unique)
	}
	if m.rand.IntN(2) == 0 {
		texts := []string{"1", "NumberLong(3)", "5.0", "-1", "-1.0", "0", "-2", "2.5", `"3"`, "null", "NumberLong(2147483649)", "NumberDecimal('3')"}
		ttls := []int64{1, 3, 5, -1, -1, 0, 0, 0, 0, 0, 0, 0}
		i := m.rand.IntN(len(texts))
		d.ttl = ttls[i]
		b += ", ttl: " + texts[i]
	}
	d.text = fmt.Sprintf("%s, n: %d}", b, m.rand.Int32())
	return d
}

func (m *model) value(d *modelDoc, name string) string {
	date := func() string {
		ms := m.now() + int64(m.rand.IntN(30_000)) - 5_000
		d.fields[name] = append(d.fields[name], ms)
		return fmt.Sprintf("Date(%d)", ms)
	}
	switch m.rand.IntN(8) {
	case 0, 1:
		return ""
	case 2:
		return ", " + name + `: "2001-01-01"`
	case 3:
		return fmt.Sprintf(", %s: %d", name, m.now()/1000)
	case 4:
		return fmt.Sprintf(", %s: [%s, 3, %s]", name, date(), date())
	}
	return ", " + name + ": " + date()
}

func (m *model) find(id int) *modelDoc {
	for _, d := range m.docs {
		if d.id == id {
			return d
		}
	}
	return nil
}

// makeRoom removes the hidden documents that have the unique value; blocked is true when one that can be seen has it.
func (m *model) makeRoom(d *modelDoc) (blocked bool) {
	taken := func(o *modelDoc) bool { return o.id != d.id && d.unique >= 0 && o.unique == d.unique }
	for _, o := range m.docs {
		blocked = blocked || taken(o) && !m.hidden(o)
	}
	if !blocked {
		m.keep(func(o *modelDoc) bool { return !taken(o) })
	}
	return blocked
}

func (m *model) step(step int) {
	switch n := m.rand.IntN(100); {
	case n < 35:
		m.insert(m.make(m.rand.IntN(40)))
	case n < 50:
		m.replace(m.make(m.rand.IntN(40)))
	case n < 55:
		id := m.rand.IntN(40)
		m.do("delete c %d", id)
		m.keep(func(d *modelDoc) bool { return d.id != id || m.hidden(d) })
	case n < 85:
		m.do("advance %dms", []int{1, 10, 999, 1000, 2500, 7000}[m.rand.IntN(6)])
	case n < 87 && m.doubted():
	case n < 87:
		m.high = max(m.high, m.now())
		m.do("advance -3s")
	case n < 90:
		m.do("pass")
		m.sweep()
	case n < 91:
		m.turnFarAhead()
	case n < 93:
		m.holdOrRelease()
	case n < 96 && m.held(): // what would come back is a matter of its own
	case n < 96:
		m.collMod()
	case n < 98:
		m.all = !m.all
		m.do("set ttlHideExpired %v", m.all)
	default:
		m.do("restart")
		if m.doubted() {
			m.doubt()
		}
		m.all = false
		if m.runs {
			m.do("start")
		}
	}
	if m.runs {
		m.sweep()
	}
}

// turnFarAhead sets the clock so far ahead that it is not believed for a minute.
func (m *model) turnFarAhead() {
	m.do("step 2h")
	m.doubt()
}

func (m *model) holdOrRelease() {
	if m.hold != 0 {
		m.do(`set ttlHold "release"`)
		m.hold = 0
		return
	}
	m.hold = m.now() + int64(m.rand.IntN(10_000)) - 8_000
	m.do("set ttlHold Date(%d)", m.hold)
}

func (m *model) insert(d *modelDoc) {
	old := m.find(d.id)
	refused := old != nil && !m.hidden(old)
	if !refused {
		refused = m.makeRoom(d)
	}
	if got := m.do("insert c %s", d.text); got != refused {
		m.fatalf("insert was refused: %v, should be %v", got, refused)
	}
	if !refused {
		m.keep(func(o *modelDoc) bool { return o.id != d.id })
		m.docs = append(m.docs, d)
	}
}

func (m *model) replace(d *modelDoc) {
	old := m.find(d.id)
	there := old != nil && !m.hidden(old)
	refused := there && m.makeRoom(d)
	if got := m.do("replace c %s", d.text); got != refused {
		m.fatalf("replace was refused: %v, should be %v", got, refused)
	}
	if there && !refused {
		*old = *d
	}
}

// collMod changes the TTL of an index. What it hid does not come back; what could be seen stays.
func (m *model) collMod() {
	name := []string{"d", "e", "_ts"}[m.rand.IntN(3)]
	rule := m.rules[name]
	seconds := []int64{1, 5, 15, 40}[m.rand.IntN(4)]
	if name == "_ts" && m.rand.IntN(3) == 0 {
		seconds = -1
	}
	looser := seconds == -1 && rule.seconds != -1 || rule.seconds != -1 && seconds > rule.seconds
	if looser && (rule.hides || m.all) {
		m.keep(func(d *modelDoc) bool { return m.deadline(d, name) > m.hiding() })
	}
	shorter := seconds >= 0 && (rule.seconds < 0 || seconds < rule.seconds)
	switch {
	case shorter && len(m.docs) > 0:
		rule.at, rule.until = m.now(), max(m.now()+60_000, rule.until)
	case shorter:
		rule.at, rule.until = 0, 0
	case looser && m.now() < rule.until:
		rule.at = m.now()
	}
	m.do("collMod c %s {expireAfterSeconds: %d}", name, seconds)
	rule.seconds = seconds
}

// check compares what is seen, counted and stored.
func (m *model) check() {
	m.t.Helper()
	view, err := m.world.store.View(context.Background())
	if err != nil {
		m.fatalf("%v", err)
	}
	defer view.Close()
	r, _ := view.Collection(m.ns)
	m.compare("seen", r, func(d *modelDoc) bool { return !m.hidden(d) })
	m.compare("stored", r.Unhidden(), func(*modelDoc) bool { return true })
	seen := int64(0)
	for _, d := range m.docs {
		if !m.hidden(d) {
			seen++
		}
		rec, ok, err := r.GetByID(bson.Int32(int32(d.id)))
		switch {
		case err != nil || ok == m.hidden(d):
			m.fatalf("get %d: %v, %v", d.id, ok, err)
		case ok && rec.Modified != d.modified:
			m.fatalf("document %d was modified at %d, not %d", d.id, rec.Modified, d.modified)
		}
	}
	if n, err := r.Count(); err != nil || n != seen {
		m.fatalf("count is %d, not %d (%v)", n, seen, err)
	}
}

func (m *model) compare(what string, r *storage.Reader, f func(*modelDoc) bool) {
	m.t.Helper()
	ids, err := idsOf(r)
	if err != nil {
		m.fatalf("%v", err)
	}
	var want []string
	for _, d := range m.docs {
		if f(d) {
			want = append(want, fmt.Sprint(d.id))
		}
	}
	slices.Sort(ids)
	slices.Sort(want)
	if !slices.Equal(ids, want) {
		m.fatalf("%s are %v, not %v, at %v", what, ids, want, time.UnixMilli(m.now()).Sub(zero))
	}
}
