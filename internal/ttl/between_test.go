package ttl_test

import (
	"context"
	"strings"
	"testing"
)

// TestTellingGivesWay: while a sweep tells of each document, and rests for clients, what comes up in other collections does not wait for
// its end, and what comes up in its own does; two that tell take turns.
func TestTellingGivesWay(t *testing.T) {
	const begin = `
rest 40ms
db.c d_1: deleted 40 of 40, 40 at once, more
rest 180ms
` // for the index of o that is new, and nothing is due by
	for name, c := range map[string]struct{ other, want string }{
		"few": {`fill o 5 {d: @-9900ms}`, `db.c d_1: deleted 40 of 40, 40 at once, more
db.o d_1: deleted 5 of 5
db.c d_1: deleted 320 of 320, 320 at once
`},
		"its own": {`insert c {_id: 1000, d: @-9900ms}`, `db.c d_1: deleted 360 of 360, 360 at once
`},
		"many": {`fill o 120 {d: @-9900ms}`, `db.c d_1: deleted 40 of 40, 40 at once, more
db.o d_1: deleted 60 of 60, 60 at once, more
db.c d_1: deleted 60 of 60, 60 at once, more
db.o d_1: deleted 60 of 60, 60 at once, more
db.c d_1: deleted 60 of 60, 60 at once, more
db.c d_1: deleted 200 of 200, 200 at once
`},
	} {
		w := newWorld(t)
		w.close()
		w.tells = true
		w.open()
		limits := &w.ddl.Sweeper.Limits
		limits.Few, limits.MostTold = 10, 20
		w.line(`index c {key: {d: 1}, name: "d_1", expireAfterSeconds: 10}`)
		w.line(`index o {key: {d: 1}, name: "d_1", expireAfterSeconds: 10}`)
		w.line(`fill c 400 {d: @-1h}`)
		w.line(c.other)
		w.line(`slow 20ms`)
		if err := w.monitor.RunPass(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got, want := "\n"+w.out.String(), begin+c.want; got != want {
			t.Errorf("%s: %s\nnot\n%s", name, strings.TrimSpace(got), strings.TrimSpace(want))
		}
	}
}
