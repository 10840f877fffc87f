package accumulator

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/testheap"
)

// TestSizeIsWhatIsHeld: a Fold takes about as much memory as it says, in few groups of many values as in many of few, so
// that what bounds it bounds the server's memory.
func TestSizeIsWhatIsHeld(t *testing.T) {
	exprs := expr.NewParser(expr.Options{Scripts: javascript.InProcess(clock.Wall())})
	p := NewParser(exprs, nil, nil)
	for _, op := range Operators() {
		if op.Group == nil {
			continue
		}
		arg := strings.Replace(arguments()[op.Name], "n: 3", "n: 100000", 1)
		s, err := p.Group("f", bson.MustParse("{"+op.Name+": "+arg+"}"), nil)
		if err != nil {
			t.Fatal(err)
		}
		f := feeding{t, exprs.NewEnv(), s}
		f.add(f.start(), docOf(0)) // has what they all share made
		for _, c := range []struct{ groups, values int }{{2, 40_000}, {2_000, 3}} {
			folds := make([]Fold, c.groups)
			before := testheap.Bytes()
			for g := range folds {
				folds[g] = f.start()
				for i := range c.values {
					f.add(folds[g], docOf((i*7919)%c.values))
				}
			}
			took := testheap.Bytes() - before
			said := 0
			for _, fold := range folds {
				said += fold.Size()
			}
			if took > 64<<10 && float64(took) > 1.25*float64(said) {
				t.Errorf("%s takes %d bytes for %d groups of %d values and says %d", op.Name, took, c.groups, c.values, said)
			}
			runtime.KeepAlive(folds)
		}
	}
}

// docOf is a document of the kind of randomDoc.
func docOf(i int) bson.Doc {
	b := bson.Build().Int32("v", int32(i)).Value("a", bson.ArrayOf(bson.Int32(int32(i)), bson.String("x")))
	return b.Object("d").Int32(fmt.Sprint("f", i), int32(i)).End().Doc()
}
