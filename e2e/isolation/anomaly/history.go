// Package anomaly finds in a history of transactions what snapshot isolation forbids, by the method of Elle (Kingsbury and Alvaro,
// "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020): clients append unique values to lists and read
// whole lists, so that each read tells which writes came before it, and in which order. It knows no server and no protocol.
//
// What it holds a history to is strong snapshot isolation: each committed transaction reads one state, that of a moment between its
// first call and its end, and of two transactions that append to one list the one ends before the other's moment. Write skew passes.
package anomaly

import (
	"fmt"
	"math"
	"strings"
)

// Outcome is what a client knows of the end of a transaction.
type Outcome int

const (
	Committed Outcome = iota
	// Aborted transactions have no effect that anybody may see.
	Aborted
	// Unknown is one whose end was not heard of. It is committed when another has read what it wrote, and has no part in the history otherwise.
	Unknown
)

// Never is the end of a transaction of unknown outcome: it may take effect at any time after its start.
const Never = int64(math.MaxInt64)

// Txn is a transaction, or one write or read outside of transactions, which is a transaction by itself.
type Txn struct {
	Name       string // how reports speak of it
	Start, End int64  // when its first call was made, and when its last one was answered, by one clock
	Outcome    Outcome
	Ops        []Op // in the order of their execution
}

// Op is an append to a list, or a read of one.
type Op struct {
	Key   string
	Value int64 // appended; unique among all appends to the key
	Read  bool
	List  []int64 // read; empty where the list was not there
}

// Append is an append of a value to the list of a key.
func Append(key string, value int64) Op { return Op{Key: key, Value: value} }

// Read is a read of the list of a key.
func Read(key string, list []int64) Op { return Op{Key: key, Read: true, List: list} }

func (o Op) String() string {
	if o.Read {
		return fmt.Sprintf("read %s %v", o.Key, o.List)
	}
	return fmt.Sprintf("append %s %d", o.Key, o.Value)
}

func (o Outcome) String() string { return [...]string{"committed", "aborted", "unknown"}[o] }

func (t *Txn) String() string {
	end := "?"
	if t.End != Never {
		end = fmt.Sprint(t.End)
	}
	ops := make([]string, len(t.Ops))
	for i, o := range t.Ops {
		ops[i] = o.String()
	}
	return fmt.Sprintf("%s %d-%s %v: %s", t.Name, t.Start, end, t.Outcome, strings.Join(ops, "; "))
}
