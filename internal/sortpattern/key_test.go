package sortpattern

import (
	"errors"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestKeysOfManyElementsAsk: looking for the first of many elements, or of few that are large, asks whether anybody wants it.
func TestKeysOfManyElementsAsk(t *testing.T) {
	p, err := Parse(bson.MustDoc(`{"a.x": 1, "a.y": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	many := bson.Build().Array("a")
	for i := range 10 * workPerAsk {
		many.Value(bson.IndexKey(i), bson.Build().Int32("x", int32(i)).Doc().Value())
	}
	large := bson.Build().Array("a")
	for i := range 20 {
		large.Value(bson.IndexKey(i), bson.Build().String("x", strings.Repeat("x", workPerAsk*bytesPerWork)).Doc().Value())
	}
	stop := errors.New("stop")
	for name, doc := range map[string]bson.Doc{"many": many.End().Doc(), "large": large.End().Doc()} {
		asked := 0
		if _, err := p.Key(nil, doc, nil, nil, func() error { asked++; return nil }); err != nil || asked < 10 {
			t.Errorf("%s: asked %d times, %v", name, asked, err)
		}
		asked = 0
		if _, err := p.Key(nil, doc, nil, nil, func() error { asked++; return stop }); !errors.Is(err, stop) || asked != 1 {
			t.Errorf("%s: asked %d times, %v", name, asked, err)
		}
	}
}
