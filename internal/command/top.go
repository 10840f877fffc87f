package command

import (
	"maps"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// maxUsed is how many namespaces are watched at once; further ones are not.
const maxUsed = 10_000

func topCommands() []*Command {
	return []*Command{
		{Name: "top", Needs: Needs{OnCluster: actions(privilege.Top)}, Doc: "Tells how long each collection was worked on.", AdminOnly: true, Run: top},
	}
}

// event is one of the columns of top.
type event int

const (
	totalTime event = iota
	readLock
	writeLock
	queries
	getMores
	inserts
	updates
	removes
	otherCommands
	events
)

// eventNames are the columns in MongoDB's order.
func eventNames() [events]string {
	return [events]string{"total", "readLock", "writeLock", "queries", "getmore", "insert", "update", "remove", "commands"}
}

// usage is how much each namespace was used.
type usage struct {
	mu struct {
		sync.RWMutex // guards the map; the counters in it count themselves
		of           map[string]*used
	}
}

// used is how much one namespace was: the columns of top, and what $collStats tells, where each operation is of one kind.
type used struct {
	columns                 [events]latency
	reads, writes, commands latency
}

// usageOf says which lock a command takes on the collection it names and in which column top counts it. Commands of several
// statements are counted by those.
func usageOf(command string) (lock, column event, ok bool) {
	switch command {
	case "find":
		return readLock, queries, true
	case "getMore":
		return readLock, getMores, true
	case "insert":
		return writeLock, inserts, true
	case "findAndModify", "create", "createIndexes", "dropIndexes", "collMod":
		return writeLock, otherCommands, true
	case "aggregate", "count", "distinct", "listIndexes", "collStats", "validate":
		return readLock, otherCommands, true
	}
	return 0, 0, false
}

// kindOf is what kind of operation column counts of command are, in $collStats.
func (u *used) kindOf(command string, lock, column event) *latency {
	switch {
	case lock == writeLock && (column != otherCommands || command == "findAndModify"):
		return &u.writes
	case lock == readLock && (column != otherCommands || command == "aggregate" || command == "count" || command == "distinct"):
		return &u.reads
	}
	return &u.commands
}

func (u *usage) add(command, ns string, micros int64, err error) {
	if command == "drop" && err == nil {
		u.forget(ns)
		return
	}
	if lock, column, ok := usageOf(command); ok {
		u.count(command, ns, lock, column, micros, err)
	}
}

// statement counts one statement of a write, by the name of its kind in the profiler.
func (u *usage) statement(kind, ns string, micros int64, err error) {
	column := inserts
	switch kind {
	case "update":
		column = updates
	case "remove":
		column = removes
	}
	u.count("", ns, writeLock, column, micros, err)
}

func (u *usage) count(command, ns string, lock, column event, micros int64, err error) {
	u.mu.RLock()
	counters := u.mu.of[ns]
	u.mu.RUnlock()
	if counters == nil {
		if err != nil {
			return // what failed may name what never was
		}
		if counters = u.watch(ns); counters == nil {
			return
		}
	}
	for _, e := range [3]event{totalTime, lock, column} {
		counters.columns[e].add(micros)
	}
	kind := counters.kindOf(command, lock, column)
	kind.add(micros)
	kind.sort(micros)
}

func (u *usage) watch(ns string) *used {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.mu.of == nil {
		u.mu.of = map[string]*used{}
	}
	if u.mu.of[ns] == nil && len(u.mu.of) < maxUsed {
		u.mu.of[ns] = &used{}
	}
	return u.mu.of[ns]
}

// forgetDatabase drops what was counted of all namespaces of a database.
func (u *usage) forgetDatabase(db string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.mu.of, func(ns string, _ *used) bool { return namespace.Split(ns).DB == db })
}

// forget drops what was counted of a namespace.
func (u *usage) forget(ns string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.mu.of, ns)
}

func top(op *Op) (bson.Doc, error) {
	b := bson.Build().Object("totals").String("note", "all times in microseconds")
	names := eventNames()
	op.usage.mu.RLock()
	defer op.usage.mu.RUnlock()
	for _, ns := range slices.Sorted(maps.Keys(op.usage.mu.of)) {
		b.Object(ns)
		for i := range op.usage.mu.of[ns].columns {
			counter := &op.usage.mu.of[ns].columns[i]
			b.Object(names[i]).Int64("time", counter.micros.Load()).Int64("count", counter.count.Load()).End()
		}
		b.End()
	}
	return b.End().Doc(), nil
}
