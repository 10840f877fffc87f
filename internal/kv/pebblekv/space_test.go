//go:build unix

package pebblekv

import (
	"context"
	"encoding/binary"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/kv"
)

const (
	spaceRecords  = 1_000_000
	spaceBatch    = 1000
	spacePatience = time.Minute
)

// BenchmarkSpace fills a store on disk with a million records of 300 bytes and two indexes, deletes them as a sweep does and
// says what the folder takes at its largest, full and empty again, and how long that lasts.
func BenchmarkSpace(b *testing.B) {
	for b.Loop() {
		dir := b.TempDir()
		e, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		empty := taken(b, dir)
		largest := fillSpace(b, e, dir)
		b.ReportMetric(mebi(largest), "MiB-largest")
		b.ReportMetric(mebi(taken(b, dir)), "MiB-full")
		emptySpace(b, e)
		start := time.Now()
		left := taken(b, dir)
		for left > empty+1<<20 && time.Since(start) < spacePatience {
			time.Sleep(100 * time.Millisecond)
			left = taken(b, dir)
		}
		b.ReportMetric(mebi(left), "MiB-emptied")
		b.ReportMetric(time.Since(start).Seconds(), "s-to-empty")
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func mebi(n int64) float64 { return float64(n) / (1 << 20) }

// taken is what dir takes on disk.
func taken(b *testing.B, dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went meanwhile
		}
		if info, err := entry.Info(); err == nil {
			n += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return n
}

func fillSpace(b *testing.B, e *Engine, dir string) (largest int64) {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 300)
	for n := 0; n < spaceRecords; {
		txn, err := e.Begin()
		if err != nil {
			b.Fatal(err)
		}
		for range spaceBatch {
			for j := range 150 { // half of it compresses
				value[j] = byte(rng.Uint32())
			}
			txn.Set(benchKey(n), value)
			txn.Set(binary.BigEndian.AppendUint64([]byte("date/"), uint64(n)), nil)
			txn.Set(binary.BigEndian.AppendUint64([]byte("id/"), rng.Uint64()), benchKey(n))
			n++
		}
		txn.Add([]byte("count"), spaceBatch)
		if err := txn.Commit(context.Background(), kv.Synced); err != nil {
			b.Fatal(err)
		}
		largest = max(largest, taken(b, dir))
	}
	return largest
}

func emptySpace(b *testing.B, e *Engine) {
	b.Helper()
	txn, err := e.Begin()
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range []string{"record", "date", "id"} {
		txn.DeleteRange([]byte(r+"/"), []byte(r+"0"))
	}
	txn.Add([]byte("count"), -spaceRecords)
	if err := txn.Commit(context.Background(), kv.Synced); err != nil {
		b.Fatal(err)
	}
}
