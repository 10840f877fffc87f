package anomaly

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestHistories checks histories that are written by hand: one transaction a line, as Txn.String writes it. "?" is an end that was not
// heard of.
func TestHistories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "check" {
				d.Fatalf(t, "no command is called %s", d.Cmd)
			}
			var history []Txn
			for line := range strings.Lines(d.Input) {
				txn, err := parseTxn(line)
				if err != nil {
					d.Fatalf(t, "%s: %v", line, err)
				}
				history = append(history, txn)
			}
			r := Check(history)
			var out strings.Builder
			for _, a := range r.Anomalies {
				fmt.Fprintf(&out, "%s: %s\n", a.Name, a.About)
			}
			if len(r.Anomalies) == 0 {
				out.WriteString("nothing\n")
			}
			if r.Skews > 0 {
				fmt.Fprintf(&out, "skews: %d\n", r.Skews)
			}
			if r.Recovered > 0 {
				fmt.Fprintf(&out, "recovered: %d\n", r.Recovered)
			}
			return out.String()
		})
	})
}

// parseTxn reads "T1 1-4 committed: append x 1; read y [1 2]".
func parseTxn(line string) (Txn, error) {
	head, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
	words := strings.Fields(head)
	if !ok || len(words) != 3 {
		return Txn{}, fmt.Errorf("not \"name start-end outcome: operations\"")
	}
	txn := Txn{Name: words[0], Outcome: map[string]Outcome{"committed": Committed, "aborted": Aborted, "unknown": Unknown}[words[2]]}
	if words[2] != txn.Outcome.String() {
		return Txn{}, fmt.Errorf("no outcome is called %s", words[2])
	}
	start, end, _ := strings.Cut(words[1], "-")
	var err error
	if txn.Start, err = strconv.ParseInt(start, 10, 64); err != nil {
		return Txn{}, err
	}
	if txn.End = Never; end != "?" {
		if txn.End, err = strconv.ParseInt(end, 10, 64); err != nil {
			return Txn{}, err
		}
	}
	for text := range strings.SplitSeq(rest, ";") {
		op, err := parseOp(strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(text)))
		if err != nil {
			return Txn{}, err
		}
		txn.Ops = append(txn.Ops, op)
	}
	return txn, nil
}

func parseOp(words []string) (Op, error) {
	var values []int64
	for _, w := range words[min(2, len(words)):] {
		v, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			return Op{}, err
		}
		values = append(values, v)
	}
	switch {
	case len(words) >= 2 && words[0] == "read":
		return Read(words[1], values), nil
	case len(words) == 3 && words[0] == "append":
		return Append(words[1], values[0]), nil
	}
	return Op{}, fmt.Errorf("neither \"append key value\" nor \"read key [values]\": %q", words)
}

// TestHistoryTwice: a history in which one value is appended twice says nothing, and is the fault of whoever made it.
func TestHistoryTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Check([]Txn{{Ops: []Op{Append("x", 1)}}, {Ops: []Op{Append("x", 1)}}})
}
