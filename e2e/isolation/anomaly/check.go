package anomaly

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Report is what Check has found.
type Report struct {
	// Anomalies are what snapshot isolation forbids, at most maxAnomalies of each name.
	Anomalies []Anomaly
	// Skews is in how many groups transactions depend on one another in a circle in a way that snapshot isolation allows. Without any
	// the history says little: nothing in it ran beside one another.
	Skews int
	// Recovered are transactions of unknown outcome that others saw committed.
	Recovered int
}

// Anomaly is one thing that must not be.
type Anomaly struct {
	// Name is as in the literature: G0 (dirty write), G1a (aborted read), G1b (intermediate read), G1c (circular information flow), lost
	// update, G-single (read skew), G-nonadjacent (long fork and its like). Behind "-realtime" stand those that show only when
	// a transaction that began after another's end must see it. The others are:
	// "internal" (a transaction does not see what it has read or written itself), "order" (two reads of one list contradict one
	// another), "duplicate" (an append that was executed twice) and "unwritten" (a value that nobody appended).
	Name string
	// About says which, in one line; the transactions follow, each on its own line.
	About string
	Txns  []*Txn
}

func (a Anomaly) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", a.Name, a.About)
	for _, t := range a.Txns {
		fmt.Fprintf(&b, "\n  %v", t)
	}
	return b.String()
}

// maxAnomalies bounds a report: one fault shows many times.
const maxAnomalies = 5

// checker goes through a history once.
type checker struct {
	history   []Txn
	writers   map[element]int // who appended it, by its place in the history
	committed []bool          // those that are part of what is checked
	keys      map[string]*key
	graph     graph
	report    Report
	names     map[string]int // of anomalies, and how many there are
}

// element is a value in a list.
type element struct {
	key   string
	value int64
}

// key is what is known of one list.
type key struct {
	name    string
	reads   []view
	order   []int64 // the longest list that was read: its values in the order in which they were appended
	appends []int   // transactions that appended to it, each once
}

// view is what a transaction saw of a list that others had written.
type view struct {
	txn  int
	list []int64
}

// Check finds the anomalies of a history.
func Check(history []Txn) Report {
	c := &checker{history: history, writers: map[element]int{}, committed: make([]bool, len(history)), keys: map[string]*key{}, graph: newGraph(len(history)), names: map[string]int{}}
	c.attribute()
	c.settle()
	for i := range history {
		if c.committed[i] {
			c.views(i)
		}
	}
	for _, k := range c.sortedKeys() {
		c.orderOf(k)
		c.readsOf(k)
		c.depend(k)
	}
	c.report.Skews = c.graph.skews()
	c.realTime()
	c.cycles()
	return c.report
}

func (c *checker) found(name string, txns []int, format string, args ...any) {
	if c.names[name]++; c.names[name] > maxAnomalies {
		return
	}
	a := Anomaly{Name: name, About: fmt.Sprintf(format, args...)}
	for _, i := range txns {
		a.Txns = append(a.Txns, &c.history[i])
	}
	c.report.Anomalies = append(c.report.Anomalies, a)
}

// attribute finds who appended what.
func (c *checker) attribute() {
	for i := range c.history {
		for _, o := range c.history[i].Ops {
			if o.Read {
				continue
			}
			e := element{o.Key, o.Value}
			if other, ok := c.writers[e]; ok {
				panic(fmt.Sprintf("%v is appended twice, by %s and %s: the history cannot be read", e, c.history[other].Name, c.history[i].Name))
			}
			c.writers[e] = i
		}
	}
}

// settle decides which transactions are committed: those of unknown outcome are if one that is committed has read what they wrote.
func (c *checker) settle() {
	var todo []int
	for i := range c.history {
		if c.history[i].Outcome == Committed {
			c.committed[i] = true
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, o := range c.history[i].Ops {
			for _, v := range o.List {
				w, ok := c.writers[element{o.Key, v}]
				if ok && !c.committed[w] && c.history[w].Outcome == Unknown {
					c.committed[w] = true
					c.report.Recovered++
					todo = append(todo, w)
				}
			}
		}
	}
}

func (c *checker) key(name string) *key {
	k := c.keys[name]
	if k == nil {
		k = &key{name: name}
		c.keys[name] = k
	}
	return k
}

func (c *checker) sortedKeys() []*key {
	var all []*key
	for _, k := range c.keys {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *key) int { return cmp.Compare(a.name, b.name) })
	return all
}

// views takes from a transaction what it saw of others, and holds its reads against one another and against what it had appended.
func (c *checker) views(i int) {
	type sight struct {
		own  []int64 // appended so far
		base []int64
		seen bool
	}
	sights := map[string]*sight{}
	for _, o := range c.history[i].Ops {
		s := sights[o.Key]
		if s == nil {
			s = &sight{}
			sights[o.Key] = s
		}
		if !o.Read {
			if len(s.own) == 0 {
				k := c.key(o.Key)
				k.appends = append(k.appends, i)
			}
			s.own = append(s.own, o.Value)
			continue
		}
		base := len(o.List) - len(s.own)
		if base < 0 || !slices.Equal(o.List[base:], s.own) || s.seen && !slices.Equal(o.List[:base], s.base) {
			c.found("internal", []int{i}, "%s reads %v of %s, having read %v and appended %v", c.history[i].Name, o.List, o.Key, s.base, s.own)
			continue
		}
		if !s.seen {
			s.seen, s.base = true, o.List[:base]
			k := c.key(o.Key)
			k.reads = append(k.reads, view{i, s.base})
		}
	}
}

// orderOf finds in which order a list was appended to. Every read has to agree with the longest; one that does not tells nothing more.
func (c *checker) orderOf(k *key) {
	longest := -1
	for r, v := range k.reads {
		if longest < 0 || len(v.list) > len(k.reads[longest].list) {
			longest = r
		}
	}
	if longest < 0 {
		return
	}
	reader := k.reads[longest].txn
	k.order = k.reads[longest].list
	met := map[int64]bool{}
	for i, v := range k.order {
		if met[v] {
			c.found("duplicate", []int{reader}, "%s reads %d twice in %s", c.history[reader].Name, v, k.name)
			k.order = k.order[:i]
			break
		}
		met[v] = true
	}
	k.reads = slices.DeleteFunc(k.reads, func(v view) bool {
		if len(v.list) <= len(k.order) && slices.Equal(v.list, k.order[:len(v.list)]) {
			return false
		}
		if v.txn != reader {
			c.found("order", []int{v.txn, reader}, "%s and %s read lists of %s that contradict one another", c.history[v.txn].Name, c.history[reader].Name, k.name)
		}
		c.sources(k, v)
		return true
	})
}

// sources looks for values that nobody may see, and says whether there are none.
func (c *checker) sources(k *key, v view) bool {
	for _, value := range v.list {
		w, ok := c.writers[element{k.name, value}]
		switch {
		case !ok:
			c.found("unwritten", []int{v.txn}, "%s reads %d in %s, which nobody appended", c.history[v.txn].Name, value, k.name)
			return false
		case !c.committed[w]:
			c.found("G1a", []int{v.txn, w}, "%s reads %d in %s, which %s appended that was aborted", c.history[v.txn].Name, value, k.name, c.history[w].Name)
			return false
		}
	}
	return true
}

// readsOf looks at what was read of a list, one read after the other.
func (c *checker) readsOf(k *key) {
	clean := len(k.reads) == 0
	for _, v := range k.reads {
		if len(v.list) == len(k.order) && c.sources(k, v) { // the shorter ones have nothing that this has not
			clean = true
			break
		}
	}
	for _, v := range k.reads {
		if !clean && len(v.list) < len(k.order) {
			c.sources(k, v)
		}
		if len(v.list) == 0 {
			continue
		}
		last := v.list[len(v.list)-1]
		w, ok := c.writers[element{k.name, last}]
		if !ok || w == v.txn || !c.committed[w] {
			continue
		}
		if final := c.lastAppend(w, k.name); final != last {
			c.found("G1b", []int{v.txn, w}, "%s reads %s up to %d, and %s appended %d after that", c.history[v.txn].Name, k.name, last, c.history[w].Name, final)
		}
	}
}

func (c *checker) lastAppend(txn int, name string) (value int64) {
	for _, o := range c.history[txn].Ops {
		if !o.Read && o.Key == name {
			value = o.Value
		}
	}
	return value
}

// depend draws the edges that a list tells of. What was appended and nobody has read stands behind all that was read.
func (c *checker) depend(k *key) {
	var order []int // writers of the elements of k.order; -1 for those that are not committed
	place := map[int]bool{}
	for _, v := range k.order {
		w, ok := c.writers[element{k.name, v}]
		if !ok || !c.committed[w] {
			w = -1
		}
		order = append(order, w)
		place[w] = true
	}
	var behind []int
	for _, w := range k.appends {
		if !place[w] {
			behind = append(behind, w)
		}
	}
	next := func(i int) []int { // writers of what comes first from the place i on
		for ; i < len(order); i++ {
			if order[i] >= 0 {
				return order[i : i+1]
			}
		}
		return behind
	}
	for i, w := range order {
		if w >= 0 {
			c.graph.depend(w, next(i+1), writeWrite, k.name)
		}
	}
	for _, v := range k.reads {
		for i := len(v.list) - 1; i >= 0; i-- {
			if w := order[i]; w >= 0 {
				c.graph.depend(w, []int{v.txn}, writeRead, k.name)
				break
			}
		}
		c.graph.depend(v.txn, next(len(v.list)), readWrite, k.name)
	}
}

// realTime draws edges from transactions that have ended to those that begin later, as few as say all of it.
func (c *checker) realTime() {
	type event struct {
		at    int64
		begin bool
		txn   int
	}
	var events []event
	for i := range c.history {
		if !c.committed[i] {
			continue
		}
		events = append(events, event{c.history[i].Start, true, i})
		if c.history[i].Outcome == Committed && c.history[i].End != Never {
			events = append(events, event{c.history[i].End, false, i})
		}
	}
	slices.SortFunc(events, func(a, b event) int { // of one moment: beginnings first, which are not after an end then
		if c := cmp.Compare(a.at, b.at); c != 0 || a.begin == b.begin {
			return c
		}
		if a.begin {
			return -1
		}
		return 1
	})
	var ended []int // none of them ended before another of them began
	for _, e := range events {
		if e.begin {
			for _, w := range ended {
				c.graph.depend(w, []int{e.txn}, realTime, "")
			}
			continue
		}
		ended = slices.DeleteFunc(ended, func(w int) bool { return c.history[w].End < c.history[e.txn].Start })
		ended = append(ended, e.txn)
	}
}

// cycles looks for what cannot be put into an order.
func (c *checker) cycles() {
	for _, group := range c.graph.knots() {
		name, path := c.graph.classify(group)
		var txns []int
		var about strings.Builder
		for _, s := range path {
			fmt.Fprintf(&about, "%s -%s-> ", c.history[s.from].Name, s.label())
			txns = append(txns, s.from)
		}
		about.WriteString(c.history[path[0].from].Name)
		c.found(name, txns, "%s", &about)
	}
}
