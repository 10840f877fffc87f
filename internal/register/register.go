// Package register looks for an order of what clients have read and written of single documents, in which none stands outside of the time of its
// call, by porcupine. It knows no server and no protocol.
package register

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is what one call does to a register.
type Kind int

// The kinds.
const (
	Read Kind = iota
	Write
	// Swap writes a value where another one is.
	Swap
)

func (k Kind) String() string { return [...]string{"read", "write", "swap"}[k] }

// Call is one of them; where there is no document the value is 0.
type Call struct {
	Kind  Kind
	Key   string
	Value int64 // written
	Old   int64 // that has to be there for a swap
	// About says more, for who reads a report.
	About string
}

// Answer is what came back; nobody knows what a call did that has none.
type Answer struct {
	Known bool
	Value int64 // read
	Done  bool  // of a swap
}

// Never is the end of a call of unknown outcome.
const Never = int64(math.MaxInt64)

// Operation is a call with its answer. Reads without an answer tell nothing and are left out.
func Operation(client int, c Call, begin int64, a Answer, end int64) porcupine.Operation {
	if !a.Known {
		end = Never
	}
	return porcupine.Operation{ClientId: client, Input: c, Call: begin, Output: a, Return: end}
}

// Report is what Check has found.
type Report struct {
	Ordered   int // documents
	Undecided int // those of which no order was found in time
	Wrong     []string
}

// Check checks each document of a history, each for so long at most.
func Check(history []porcupine.Operation, limit time.Duration) (r Report) {
	for key, calls := range byKey(history) {
		switch porcupine.CheckOperationsTimeout(model(), calls, limit) {
		case porcupine.Illegal:
			r.Wrong = append(r.Wrong, fmt.Sprintf("what was read of %s is in no order:\n%s", key, told(calls)))
		case porcupine.Unknown:
			r.Undecided++
		default:
			r.Ordered++
		}
	}
	return r
}

// Spoil has a good history say that in the end a read found what nobody wrote; Check has to refuse it.
func Spoil(history []porcupine.Operation) (spoilt []porcupine.Operation) {
	for _, calls := range byKey(history) {
		last := int64(0) // the end of any call that is known
		for _, o := range calls {
			if o.Return != Never {
				last = max(last, o.Return)
			}
		}
		return append(calls, Operation(0, Call{Kind: Read, Key: calls[0].Input.(Call).Key}, last+1, Answer{Known: true, Value: -1}, last+2))
	}
	return nil
}

// model is that of one document.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			is, in, out := state.(int64), input.(Call), output.(Answer)
			switch {
			case in.Kind == Read:
				return out.Value == is, is
			case in.Kind == Write:
				return true, in.Value
			case out.Known && out.Done != (is == in.Old):
				return false, is
			case is == in.Old:
				return true, in.Value
			}
			return true, is
		},
	}
}

func byKey(history []porcupine.Operation) map[string][]porcupine.Operation {
	all := map[string][]porcupine.Operation{}
	for _, o := range history {
		k := o.Input.(Call).Key
		all[k] = append(all[k], o)
	}
	return all
}

func told(calls []porcupine.Operation) string {
	var b strings.Builder
	for _, o := range calls {
		in, out := o.Input.(Call), o.Output.(Answer)
		fmt.Fprintf(&b, "client %d, %d-%d: %v of %d, where it is %d (%s): %d, done: %t, known: %t\n", o.ClientId, o.Call, o.Return, in.Kind, in.Value, in.Old, in.About,
			out.Value, out.Done, out.Known)
	}
	return b.String()
}
