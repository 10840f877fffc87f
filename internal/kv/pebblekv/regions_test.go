package pebblekv

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
)

// byFirst has the keys with the same first byte lie together.
func byFirst(key []byte) kv.Range { return kv.Range{Start: []byte{key[0]}, End: []byte{key[0] + 1}} }

// What is written behind what is there, in several regions at once, is mostly moved down and not merged, though something small is written
// over and over between them.
func TestAppendingIsNotMerged(t *testing.T) {
	const memTable, rounds = 4 << 20, 32
	merged := func(of func([]byte) kv.Range) float64 {
		e, err := Open("db", Options{FS: vfs.NewMem(), MemTableBytes: memTable, RegionOf: of})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		value := make([]byte, 1000)
		chacha := rand.NewChaCha8([32]byte{})
		for n := uint64(0); n < rounds*memTable/1100; {
			txn, err := e.Begin()
			if err != nil {
				t.Fatal(err)
			}
			for range 100 {
				n++
				chacha.Read(value)
				txn.Set(binary.BigEndian.AppendUint64([]byte("i"), n), value[:100])
				txn.Set(binary.BigEndian.AppendUint64([]byte("r"), n), value)
			}
			txn.Set([]byte("a"), value[:8])
			txn.Set([]byte("m"), value[:8])
			txn.Set([]byte("x"), value[:8])
			if err := txn.Commit(t.Context(), kv.Unsynced); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		e.Settle(1000)
		m := e.db.Metrics()
		var flushed, compacted uint64
		for _, l := range m.Levels {
			flushed += l.TableBytesFlushed
			compacted += l.TableBytesCompacted
		}
		t.Logf("%d KiB flushed, %d KiB merged", flushed>>10, compacted>>10)
		if flushed < rounds/2*memTable/2 {
			t.Fatalf("%d bytes flushed: too few to say anything", flushed)
		}
		return float64(compacted) / float64(flushed)
	}
	if with, without := merged(byFirst), merged(nil); with > without/2 {
		t.Errorf("%.2f of what was flushed was merged, and %.2f where nobody knew regions", with, without)
	}
}

// A table ends where a region begins or ends that much is written to, and nowhere else.
func TestRegionsPolicy(t *testing.T) {
	g := &regions{of: byFirst, full: 100}
	table := func(smallest, largest string, size uint64) pebble.TableInfo {
		return pebble.TableInfo{Size: size, Smallest: pebble.InternalKey{UserKey: []byte(smallest)}, Largest: pebble.InternalKey{UserKey: []byte(largest)}}
	}
	ends := func(want map[string]string) {
		t.Helper()
		for key, end := range want {
			if _, got, err := g.policy([]byte(key)); string(got) != end || err != nil {
				t.Errorf("a table that begins with %q ends before %q, not %q (%v)", key, got, end, err)
			}
		}
	}
	ends(map[string]string{"a": "", "z": ""})
	g.flushed([]pebble.TableInfo{
		table("a1", "c2", 100), // lies in three
		table("c3", "c4", 100),
		table("c5", "c6", 100),
		table("c7", "e1", 100),
		table("f1", "f2", 99), // has little
		table("h1", "h2", 100),
	})
	ends(map[string]string{"a": "c", "b9": "c", "c": "d", "c9": "d", "d": "h", "f1": "h", "h": "i", "h7": "i", "i": "", "z": ""})
	g.flushed([]pebble.TableInfo{table("f1", "f2", 100)})
	ends(map[string]string{"a": "f", "c": "f", "f": "g", "h": ""})
	g.flushed(nil)
	ends(map[string]string{"a": "", "f": ""})
}
