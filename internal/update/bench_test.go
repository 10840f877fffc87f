package update

import (
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// document300 is a document of about 300 bytes and twelve fields.
func document300() bson.Doc {
	b := bson.Build().ObjectID("_id", [12]byte{1})
	for i := range 8 {
		b.String(fmt.Sprintf("field%d", i), "some text here")
	}
	return b.Int32("n", 1).Object("sub").Int32("x", 1).Double("y", 2).End().Array("list").Int32("0", 1).Int32("1", 2).End().Doc()
}

func benchmarkUpdate(b *testing.B, text string) {
	l := newLanguage()
	u, err := l.updates.Parse(bson.MustParse(text), Options{Exprs: l.exprs})
	if err != nil {
		b.Fatal(err)
	}
	doc, buf := document300(), make([]byte, 0, 1024)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, changed, err := u.Apply(buf, doc, Args{Now: testNow, Env: l.env}); err != nil || !changed {
			b.Fatal(changed, err)
		}
	}
}

func BenchmarkInc(b *testing.B)       { benchmarkUpdate(b, `{$inc: {n: 1}}`) }
func BenchmarkSetNested(b *testing.B) { benchmarkUpdate(b, `{$set: {"sub.x": 5}}`) }
func BenchmarkSetNew(b *testing.B)    { benchmarkUpdate(b, `{$set: {z: 5}}`) }
func BenchmarkPush(b *testing.B)      { benchmarkUpdate(b, `{$push: {list: 3}}`) }
func BenchmarkPull(b *testing.B)      { benchmarkUpdate(b, `{$pull: {list: 2}}`) }
func BenchmarkPipeline(b *testing.B)  { benchmarkUpdate(b, `[{$set: {n: {$add: ["$n", 1]}}}]`) }

func TestModifiersDoNotAllocate(t *testing.T) {
	l, doc, buf := newLanguage(), document300(), make([]byte, 0, 1024)
	for _, text := range []string{`{$inc: {n: 1}}`, `{$set: {"sub.x": 5, z: 1}}`, `{$push: {list: 3}}`, `{$unset: {field0: 1}}`} {
		u, err := l.updates.Parse(bson.MustParse(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { u.Apply(buf, doc, Args{}) }); n != 0 {
			t.Errorf("%s: %v allocations a document", text, n)
		}
	}
}
