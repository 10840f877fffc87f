package pebblekv

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
)

const compressedKeys = 3000

// compressed is the value of a key, half of which is digits of four bits each.
func compressed(i int) []byte {
	var random [100]byte
	_, _ = rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(random[:])
	return fmt.Appendf(nil, "{number: %d, kind: 'some words that all values have', note: '%s'}", i, hex.EncodeToString(random[:]))
}

// What is written later may be compressed otherwise, and all of it is read whatever is chosen.
func TestCompression(t *testing.T) {
	disk, ctx := vfs.NewMem(), context.Background()
	span := func(c Compression) (low, high []byte) { return []byte{'k', byte(c)}, []byte{'k', byte(c) + 1} }
	chosen := []Compression{CompressForSpeed, CompressForSpace, CompressNothing}
	sizes := map[Compression]int64{}
	for round, c := range append(chosen, chosen...) {
		e, err := Open("db", Options{FS: disk, Compression: c})
		must(err)
		if round < len(chosen) {
			txn, err := e.Begin()
			must(err)
			low, high := span(c)
			for i := range compressedKeys {
				txn.Set(fmt.Appendf(low[:2:2], "%06d", i), compressed(i))
			}
			must(txn.Commit(ctx, kv.Buffered))
			must(e.Flush())
			sizes[c], err = e.SizeOf(low, high)
			must(err)
		}
		s, err := e.Snapshot()
		must(err)
		for _, written := range chosen[:min(round+1, len(chosen))] {
			low, high := span(written)
			it, err := s.NewIter(kv.IterOptions{Lower: low, Upper: high})
			must(err)
			n := 0
			for ; it.Next(); n++ {
				if value, err := it.Value(); err != nil || string(value) != string(compressed(n)) {
					t.Fatalf("value %d is %q (%v)", n, value, err)
				}
			}
			if it.Err() != nil || n != compressedKeys {
				t.Errorf("%d keys of compression %d while it is %d (%v)", n, written, c, it.Err())
			}
			must(it.Close())
		}
		must(s.Close())
		must(e.Close())
	}
	if fast, small, none := sizes[CompressForSpeed], sizes[CompressForSpace], sizes[CompressNothing]; small > fast*3/4 || fast > none*9/10 {
		t.Errorf("%d bytes for speed, %d for space, %d as they are", fast, small, none)
	}
}
