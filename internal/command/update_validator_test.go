package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestMultiUpdateParsesValidatorOnce: what a multi-update costs for each document does not grow with the collection's validator.
func TestMultiUpdateParsesValidatorOnce(t *testing.T) {
	const docs, clauses = 200, 300
	h := newHarness(t)
	send := func(text string) {
		t.Helper()
		if reply := h.send(t.Context(), "1", "test", bson.MustDoc(text)).Body; !reply.Lookup("ok").Truthy() || !reply.Lookup("writeErrors").IsMissing() {
			t.Fatalf("%.100s: %s", text, reply)
		}
	}
	var validator, inserted []string
	for i := range clauses {
		validator = append(validator, fmt.Sprintf("f%d: {$ne: %d}", i, i))
	}
	for i := range docs {
		inserted = append(inserted, fmt.Sprintf("{_id: %d, n: 0}", i))
	}
	send(`{create: "c", validator: {` + strings.Join(validator, ", ") + `}}`)
	send(`{insert: "c", documents: [` + strings.Join(inserted, ", ") + `]}`)
	allocations := testing.AllocsPerRun(3, func() { send(`{update: "c", updates: [{q: {}, u: {$inc: {n: 1}}, multi: true}]}`) })
	if perDocument := allocations / docs; perDocument > clauses/2 {
		t.Errorf("%.0f allocations for each document", perDocument)
	} else {
		t.Logf("%.0f allocations for each document", perDocument)
	}
}
