package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
)

// plainEngine is an engine that can do what every engine can, and fails when it is asked for more.
type plainEngine struct {
	kv.Engine
	t    *testing.T
	lack string
}

func (e plainEngine) Capabilities() kv.Capabilities {
	return kv.Capabilities{Counters: e.lack != "counters", LocalSync: true, SoleWriter: e.lack != "sole writer"}
}

func (e plainEngine) Begin() (kv.Txn, error) { return e.plain(e.Engine.Begin()) }

func (e plainEngine) BeginBlind() (kv.Txn, error) { return e.plain(e.Engine.BeginBlind()) }

func (e plainEngine) plain(t kv.Txn, err error) (kv.Txn, error) {
	if err != nil {
		return nil, err
	}
	return plainTxn{t, e.t}, nil
}

func (e plainEngine) Load(context.Context, func() (key, value []byte, ok bool, err error)) error {
	return errors.New("this engine does not load")
}

func (e plainEngine) Replace([]byte) (kv.Replacement, error) {
	return nil, errors.New("this engine does not replace")
}

type plainTxn struct {
	kv.Txn
	t *testing.T
}

func (t plainTxn) DeleteRange(start, end []byte) {
	t.t.Errorf("a transaction deletes a range: %q to %q", start, end)
}

// TestPlainEngine: over an engine that can do little a store does the same, more slowly.
func TestPlainEngine(t *testing.T) {
	for i, kind := range []string{"plain", "clustered"} {
		t.Run(kind, func(t *testing.T) {
			seed := *seedFlag
			if seed == 0 {
				seed = rand.Uint64()
			}
			t.Logf("go test ./internal/storage -run TestPlainEngine/%s -seed %d", kind, seed)
			f := newFixture(t)
			f.must(f.Store.Close())
			f.engine = plainEngine{Engine: f.engine, t: t}
			f.open()
			m := &model{fixture: f, rng: rand.New(rand.NewPCG(seed, uint64(i))), ns: namespace.NS{DB: "db", Coll: "c"}}
			m.online()
			m.begin(kind)
			for step := range 600 {
				m.step(step)
			}
			if m.swept > 0 {
				t.Error("something was swept")
			}
		})
	}
}

// TestRefusedEngines: an engine is refused, in words, without counters, and where other processes write as well.
func TestRefusedEngines(t *testing.T) {
	for lack, want := range map[string]string{"counters": "counters conflict", "sole writer": "other processes may write"} {
		f := newFixture(t)
		_, err := Open(context.Background(), plainEngine{f.engine, t, lack}, f.options)
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("%s: %s", lack, got)
		}
	}
}
