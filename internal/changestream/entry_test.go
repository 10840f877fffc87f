package changestream

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

var tokens = regexp.MustCompile(`_id: \{ _data: "[0-9A-F]*(\.\.\.)?" \}, `)

// TestEvents runs the cases in testdata: "event ns=d.c" makes the events of the oplog's entries in its input, a line each, for a stream on
// a namespace (all where there is none), with "expanded", "system" and "raw" as the options of the stage. What a stream is not about gives
// "-", and "!" stands before an event behind which it ends.
func TestEvents(t *testing.T) {
	datadriven.RunTest(t, "testdata/events.txt", func(t *testing.T, d *datadriven.TestData) string {
		spec := &Spec{Expanded: d.HasArg("expanded"), System: d.HasArg("system"), RawUpdates: d.HasArg("raw")}
		ns := ""
		d.MaybeScanArgs(t, "ns", &ns)
		spec.NS = namespace.Split(ns)
		var out strings.Builder
		for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
			doc := bson.MustDoc("{ts: Timestamp(5, 7), wall: new Date(5000), " + strings.TrimPrefix(line, "{"))
			if _, last, several := ApplyOps(doc); several {
				out.WriteString(map[bool]string{true: "transaction\n", false: "part of a transaction\n"}[last])
			}
			entry := EntryOf(doc, d.HasArg("transaction"))
			var event Event
			ok := event.Read(spec, &entry, doc, 0)
			switch {
			case !ok:
				out.WriteString("-")
			case event.Invalidates:
				out.WriteString("!")
				fallthrough
			default:
				out.WriteString(tokens.ReplaceAllString(event.Document(bson.Build(), event.Token.Doc(), bson.Missing, bson.Missing).String(), ""))
			}
			out.WriteByte('\n')
		}
		return out.String()
	})
}
