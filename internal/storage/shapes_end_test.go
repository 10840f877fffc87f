package storage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/build"
)

// spiked is a polygon of many edges, which takes long to check before it has keys.
func spiked(edges int) string {
	var b strings.Builder
	b.WriteString(`{type: "Polygon", coordinates: [[`)
	for i := range edges + 1 {
		at, r := 2*math.Pi*float64(i%edges)/float64(edges), 20*(1+0.5*float64(i%edges%2))
		fmt.Fprintf(&b, "[%.12f,%.12f],", r*math.Cos(at), r*math.Sin(at))
	}
	return strings.TrimSuffix(b.String(), ",") + "]]}"
}

const (
	spikedEdges = 4000
	spikedAsks  = 100 // at least so often one document of so many edges is asked for
	placeIndex  = `{key: {at: "2dsphere"}, name: "at"}`
)

func spikedFixture(t *testing.T) *fixture {
	f := newFixture(t)
	f.must(f.insert(testNS, `{_id: 1, at: `+spiked(spikedEdges)+`}`))
	return f
}

// TestShapesEndWithBuild: who ends the build of a 2dsphere index does so in the middle of one document.
func TestShapesEndWithBuild(t *testing.T) {
	why := mongoerr.New(mongoerr.MaxTimeMSExpired, "operation exceeded time limit")
	for _, end := range []bool{false, true} {
		f := spikedFixture(t)
		ctx, stop := context.WithCancelCause(context.Background())
		asked, late := 0, 0
		seen := false
		f.online()
		_, err := f.MakeIndexes(ctx, testNS, f.parse(placeIndex), func(b *build.Underway) {
			if seen {
				return
			}
			seen = true
			table := b.Tables[0]
			ask := table.Ask
			table.Ask = func() error {
				if asked++; end && asked == spikedAsks/2 {
					stop(why)
				}
				err := ask()
				if err != nil {
					late++
				}
				return err
			}
		})
		switch {
		case !end && (err != nil || asked < spikedAsks):
			t.Errorf("asked %d times whether to go on: %v", asked, err)
		case end && (!errors.Is(err, why) || late > 20):
			t.Errorf("went on for %d questions, of %d: %v", late, asked, err)
		}
		if end {
			f.garbage.Wait()
			nothingLeft(f.t, f.Store)
			f.validate(testNS)
		}
		stop(nil)
	}
}

// endingContext ends when it is asked for the end-th time whether it has ended; 0 for never.
type endingContext struct {
	context.Context
	asked, end int
}

func (c *endingContext) Err() error {
	if c.asked++; c.end > 0 && c.asked >= c.end {
		return context.DeadlineExceeded
	}
	return nil
}

// TestShapesEndWithValidate: so does who ends a validate.
func TestShapesEndWithValidate(t *testing.T) {
	f := spikedFixture(t)
	f.createIndexes(testNS, placeIndex)
	whole := &endingContext{Context: context.Background()}
	v, err := f.Validate(whole, testNS, nil)
	f.must(err)
	if !v.Valid || whole.asked < spikedAsks {
		t.Fatalf("asked %d times whether to go on: %v", whole.asked, v.Errors)
	}
	for _, end := range []int{whole.asked / 2, whole.asked * 3 / 4} {
		ctx := &endingContext{Context: context.Background(), end: end}
		if _, err := f.Validate(ctx, testNS, nil); !errors.Is(err, context.DeadlineExceeded) || ctx.asked > end+20 {
			t.Errorf("ended at question %d of %d, and asked %d: %v", end, whole.asked, ctx.asked, err)
		}
	}
}
