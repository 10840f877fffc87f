package pebblekv_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/inspect"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

var (
	damageRounds = flag.Int("damages", 24, "how often TestRandomDamage damages a store")
	damageSeed   = flag.Uint64("damage-seed", 0, "the seed of TestRandomDamage; 0 is another each time")
)

// content is what a store holds.
type content map[string]string

// files are the files of a store by their paths.
type files map[string][]byte

func readFiles(t *testing.T, disk vfs.FS, dir string) files {
	t.Helper()
	names, err := disk.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := files{}
	for _, name := range names {
		path := disk.PathJoin(dir, name)
		info, err := disk.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			maps.Copy(all, readFiles(t, disk, path))
			continue
		}
		file, err := disk.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(file)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		all[path] = b
	}
	return all
}

// disk is a new one with the files.
func (f files) disk(t *testing.T) *vfs.MemFS {
	t.Helper()
	disk := vfs.NewMem()
	for path, b := range f {
		if err := disk.MkdirAll(disk.PathDir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, disk, path, string(b))
	}
	return disk
}

// damage is one change of one file.
type damage struct {
	path, what string
}

// damaged is a copy in which one file is damaged.
func (f files) damaged(r *rand.Rand) (files, damage) {
	paths := slices.Sorted(maps.Keys(f))
	out := maps.Clone(f)
	for {
		path := paths[r.IntN(len(paths))]
		b := bytes.Clone(f[path])
		d := damage{path: path}
		kind := r.IntN(4)
		if len(b) == 0 {
			kind = 3
		}
		switch kind {
		case 0:
			at, bit := r.IntN(len(b)), r.IntN(8)
			b[at] ^= 1 << bit
			d.what = fmt.Sprintf("bit %d of byte %d of %d", bit, at, len(b))
		case 1:
			at := r.IntN(len(b))
			n := min(1+r.IntN(8<<10), len(b)-at)
			clear(b[at : at+n])
			d.what = fmt.Sprintf("%d zeros from %d of %d", n, at, len(b))
		case 2:
			d.what = fmt.Sprintf("cut from %d", len(b))
			b = b[:r.IntN(len(b))]
			d.what += fmt.Sprintf(" to %d", len(b))
		case 3:
			delete(out, path)
			d.what = "deleted"
			return out, d
		}
		if !bytes.Equal(b, f[path]) {
			out[path] = b
			return out, d
		}
	}
}

func value(r *rand.Rand) string {
	b := make([]byte, 20+r.IntN(600))
	for i := range b {
		b[i] = byte(r.UintN(256))
	}
	return string(b)
}

// acknowledge commits for a while, all of it acknowledged. Tables come and go, and ranges are deleted and replaced.
func acknowledge(t *testing.T, e *pebblekv.Engine, r *rand.Rand, want content) {
	t.Helper()
	for n := range 1500 {
		txn := begin(t, e)
		if r.IntN(40) == 0 {
			from := r.IntN(3000)
			start, end := fmt.Sprintf("k%05d", from), fmt.Sprintf("k%05d", from+r.IntN(50))
			txn.DeleteRange([]byte(start), []byte(end))
			maps.DeleteFunc(want, func(key, _ string) bool { return start <= key && key < end })
		}
		for range 1 + r.IntN(6) {
			key, v := fmt.Sprintf("k%05d", r.IntN(3000)), value(r)
			txn.Set([]byte(key), []byte(v))
			want[key] = v
		}
		if err := txn.Commit(context.Background(), kv.Synced); err != nil {
			t.Fatal(err)
		}
		if n%400 == 399 && n < 1400 {
			if err := e.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func begin(t *testing.T, e *pebblekv.Engine) kv.Txn {
	t.Helper()
	txn, err := e.Begin()
	if err != nil {
		t.Fatal(err)
	}
	return txn
}

// serves reads everything, by walking and key by key. What it cannot read must be told to be damaged, and where; all else must be
// as it was.
func serves(e *pebblekv.Engine, want content) (damaged error, err error) {
	view, err := e.Snapshot()
	if err != nil {
		return nil, err
	}
	defer view.Close()
	it, err := view.NewIter(kv.IterOptions{})
	if err != nil {
		return nil, err
	}
	found := 0
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		if err != nil {
			return nil, fmt.Errorf("value: %w", err)
		}
		if w, ok := want[string(it.Key())]; !ok || w != string(v) {
			return nil, fmt.Errorf("%q is there, and was not so", it.Key())
		}
		found++
	}
	damaged = errors.Join(it.Err(), it.Close())
	if damaged == nil && found != len(want) {
		return nil, fmt.Errorf("%d of %d keys are there", found, len(want))
	}
	for key, w := range want {
		v, err := view.Get([]byte(key))
		if errors.Is(err, kv.ErrCorrupt) {
			damaged = err
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", key, err)
		}
		if string(v) != w {
			return nil, fmt.Errorf("%q has another value", key)
		}
	}
	return damaged, nil
}

// checkDamaged opens a damaged store: it is refused with an error that names the file, or all that was acknowledged is there, but for
// what says that it is damaged.
func checkDamaged(t *testing.T, damaged files, d damage, want content) (what string) {
	t.Helper()
	var log bytes.Buffer
	disk := damaged.disk(t)
	names := func(err error) bool {
		base := filepath.Base(d.path)
		return strings.Contains(err.Error(), base) ||
			strings.HasPrefix(base, "marker.") && strings.Contains(err.Error(), base[:strings.IndexByte(base[len("marker."):], '.')+len("marker.")])
	}
	what = "served"
	for turn := range 2 { // what opening does must not lose anything either
		e, err := pebblekv.Open("db", pebblekv.Options{FS: disk, MemTableBytes: 256 << 10, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			if !names(err) {
				t.Errorf("%s, %s: the error does not name the file: %v", d.path, d.what, err)
			}
			if turn == 0 {
				if after := readFiles(t, disk, "db"); !holds(after, damaged) {
					t.Errorf("%s, %s: a refused start has changed the store", d.path, d.what)
				}
			}
			return "refused"
		}
		corrupt, err := serves(e, want)
		if err != nil {
			t.Errorf("%s, %s: SILENT LOSS in turn %d: %v", d.path, d.what, turn, err)
		}
		if corrupt != nil {
			what = "served in part"
			if !errors.Is(corrupt, kv.ErrCorrupt) || !names(corrupt) {
				t.Errorf("%s, %s: a read failed with %v", d.path, d.what, corrupt)
			}
			checkReadOnly(t, e)
		}
		if err := e.Close(); err != nil {
			t.Errorf("%s, %s: close: %v", d.path, d.what, err)
		}
	}
	return what
}

// holds says whether all files of before are there as they were.
func holds(after, before files) bool {
	for path, b := range before {
		if a, ok := after[path]; !ok || !bytes.Equal(a, b) {
			return false
		}
	}
	return true
}

// checkReadOnly: a store that has met something damaged says so, and takes no writes.
func checkReadOnly(t *testing.T, e *pebblekv.Engine) {
	t.Helper()
	if e.Stats().Damage == "" {
		t.Error("the store does not say that it is damaged")
	}
	txn := begin(t, e)
	txn.Set([]byte("new"), nil)
	if err := txn.Commit(context.Background(), kv.Synced); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("a write to a damaged store: %v", err)
	}
	if _, err := e.BeginBlind(); !errors.Is(err, kv.ErrReadOnly) { // before it reads what may be damaged
		t.Errorf("a write to a damaged store begins: %v", err)
	}
	if err := e.Room(1); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("a damaged store has room: %v", err)
	}
}

// checkSalvage: what is salvaged of a damaged store is all that was there, or something is told to be lost. It counts what is there.
func checkSalvage(t *testing.T, damaged files, d damage, want content) (right int) {
	t.Helper()
	var lost []string
	wrong := 0
	last := ""
	err := inspect.Salvage(damaged.disk(t), "db", func(what string) { lost = append(lost, what) }, func(key []byte) string { return string(key) }, func(key, value []byte) error {
		if string(key) <= last {
			t.Errorf("%s, %s: %q is salvaged after %q", d.path, d.what, key, last)
		}
		last = string(key)
		if want[string(key)] == string(value) {
			right++
		} else {
			wrong++
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s, %s: salvage: %v", d.path, d.what, err)
	}
	if len(lost) == 0 && (wrong > 0 || right != len(want)) {
		t.Errorf("%s, %s: %d of %d keys were salvaged, %d wrong, and nothing is told to be lost", d.path, d.what, right, len(want), wrong)
	}
	return right
}

// TestRandomDamage damages one file after the other of a store that was closed and of one that was not.
func TestRandomDamage(t *testing.T) {
	seed := *damageSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test ./internal/kv/pebblekv -run RandomDamage -args -damages %d -damage-seed %d", *damageRounds, seed)
	r := rand.New(rand.NewPCG(seed, 0))
	disk := vfs.NewCrashableMem()
	want := content{}
	o := pebblekv.Options{FS: disk, MemTableBytes: 256 << 10}
	e := open(t, "db", o)
	acknowledge(t, e, r, want)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, "db", o)
	acknowledge(t, e, r, want)
	unclean := readFiles(t, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: r}), "db") // the process was killed
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	clean := readFiles(t, disk, "db")
	count := map[string]int{}
	for _, f := range []files{unclean, clean} {
		if damaged, err := serves(open(t, "db", pebblekv.Options{FS: f.disk(t)}), want); damaged != nil || err != nil {
			t.Fatal("undamaged", damaged, err)
		}
		if checkSalvage(t, f, damage{what: "nothing"}, want) != len(want) {
			t.Fatal("an undamaged store was not salvaged")
		}
		for range (*damageRounds + 1) / 2 {
			spoilt, d := f.damaged(r)
			count[checkDamaged(t, spoilt, d, want)]++
			count["keys salvaged"] += checkSalvage(t, spoilt, d, want)
			count["keys"] += len(want)
		}
	}
	t.Log(count)
}

// logged is a store of one log, of so many commits of a key each, as it is when its process is killed and when it was closed.
func logged(t *testing.T, commits int) (killed, closed files, log, manifest string) {
	t.Helper()
	disk := vfs.NewCrashableMem()
	e := open(t, "db", pebblekv.Options{FS: disk})
	for n := range commits {
		txn := begin(t, e)
		txn.Set(fmt.Appendf(nil, "k%04d", n), bytes.Repeat([]byte{byte(n)}, 700))
		if err := txn.Commit(context.Background(), kv.Synced); err != nil {
			t.Fatal(err)
		}
	}
	killed = readFiles(t, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}), "db")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	closed = readFiles(t, disk, "db")
	for path := range closed {
		switch base := filepath.Base(path); {
		case strings.HasSuffix(base, ".log"):
			log = path
		case strings.HasPrefix(base, "MANIFEST-"):
			manifest = path
		}
	}
	return killed, closed, log, manifest
}

// with is a copy in which one file is another; nil removes it.
func (f files) with(path string, b []byte) files {
	out := maps.Clone(f)
	if out[path] = b; b == nil {
		delete(out, path)
	}
	return out
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 4
	return b
}

// TestDamagedLog: whatever is missing of what was acknowledged is told, with file and place, whether the store was closed or not, and
// what was before it can be had by a flag.
func TestDamagedLog(t *testing.T) {
	killed, closed, log, _ := logged(t, 200)
	base := filepath.Base(log)
	for name, f := range map[string]files{"killed": killed, "closed": closed} {
		b := f[log]
		whole := len(bytes.TrimRight(b, "\x00"))
		for _, c := range []struct {
			name string
			log  []byte
			want string
			keys int // that are left
		}{
			{"a bit in the middle", flipped(b, whole/2), " is damaged at offset ", 98},
			{"a bit in the last record", flipped(b, whole-300), " is damaged at offset ", 199},
			{"zeros", append(append(bytes.Clone(b[:whole/2]), make([]byte, 500)...), b[whole/2+500:]...), " is damaged at offset ", 98},
			{"zeros to the end", append(bytes.Clone(b[:whole/2]), make([]byte, len(b)-whole/2)...), " bytes of that cannot be read", 98},
			{"cut", b[:whole/2], " bytes of that cannot be read", 98},
			{"empty", []byte{}, " is damaged at offset 0: it was synced up to offset ", 0},
			{"deleted", nil, " is missing: ", 0},
		} {
			t.Run(name+", "+c.name, func(t *testing.T) {
				disk := f.with(log, c.log).disk(t)
				_, err := pebblekv.Open("db", pebblekv.Options{FS: disk})
				if err == nil || !strings.Contains(err.Error(), base) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--startWithDamagedLog") {
					t.Fatalf("got %v", err)
				}
				for range 2 { // the second time it is not damaged any more
					e := open(t, "db", pebblekv.Options{FS: disk, StartWithDamagedLog: true})
					view, err := e.Snapshot()
					if err != nil {
						t.Fatal(err)
					}
					if n, _ := countKeys(t, view, []byte("k")); n < int64(c.keys) || c.keys == 0 && n > 0 || n == 200 {
						t.Errorf("%d keys are left", n)
					}
					if err := errors.Join(view.Close(), e.Close()); err != nil {
						t.Fatal(err)
					}
				}
				if c.log != nil {
					if aside := readFiles(t, disk, "db/damaged"); !bytes.Equal(aside["db/damaged/"+base], c.log) {
						t.Error("the damaged log was not kept")
					}
				}
			})
		}
	}
}

// TestTornLog: what was never synced may be torn. Nothing is lost with it, and nobody is asked.
func TestTornLog(t *testing.T) {
	killed, _, log, _ := logged(t, 50)
	b := bytes.TrimRight(killed[log], "\x00")
	for _, tail := range [][]byte{nil, {1, 2, 3}, bytes.Repeat([]byte{7}, 100), b[len(b)/2 : len(b)/2+200], make([]byte, 100_000)} {
		e := open(t, "db", pebblekv.Options{FS: killed.with(log, append(bytes.Clone(b), tail...)).disk(t)})
		view, err := e.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := countKeys(t, view, []byte("k")); n != 50 {
			t.Errorf("%d keys", n)
		}
		if err := errors.Join(view.Close(), e.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedWithoutNote: chunks behind what cannot be read tell that it was damaged where nothing else does.
func TestDamagedWithoutNote(t *testing.T) {
	killed, _, log, manifest := logged(t, 200)
	killed = killed.with("db/EBB-SYNCED", nil)
	whole := len(bytes.TrimRight(killed[log], "\x00"))
	for _, f := range []files{
		killed.with(log, flipped(killed[log], whole/2)),
		killed.with(log, flipped(killed[log], whole-1500)),
		killed.with(manifest, flipped(killed[manifest], 20)),
		killed.with(log, nil),
		killed.with("db/marker.manifest.000001."+filepath.Base(manifest), nil),
	} {
		if _, err := pebblekv.Open("db", pebblekv.Options{FS: f.disk(t)}); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("got %v", err)
		}
	}
	e := open(t, "db", pebblekv.Options{FS: killed.disk(t)}) // without the note, and sound
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKilledAgain opens a store that was killed again and again, with and without writes in between: how its logs end must never be
// taken for damage.
func TestKilledAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	disk := vfs.NewCrashableMem()
	for n := range 30 {
		e := open(t, "db", pebblekv.Options{FS: disk})
		for range r.IntN(3) {
			set(t, e, fmt.Sprint(n, r.IntN(100)), kv.Synced)
		}
		if r.IntN(4) == 0 {
			if err := e.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		next := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * r.IntN(3), RNG: r})
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		disk = next
	}
}

// TestOlderFormat: a store of format 1 has no notes. It is opened and brought up to date.
func TestOlderFormat(t *testing.T) {
	killed, _, _, _ := logged(t, 20)
	disk := killed.with("db/EBB-SYNCED", nil).with("db/EBB-FORMAT", []byte("ebb pebblekv 1\n")).disk(t)
	if err := open(t, "db", pebblekv.Options{FS: disk}).Close(); err != nil {
		t.Fatal(err)
	}
	after := readFiles(t, disk, "db")
	if string(after["db/EBB-FORMAT"]) != "ebb pebblekv 3\n" || after["db/EBB-SYNCED"] == nil {
		t.Errorf("the format is %q, and there is a note of %d bytes", after["db/EBB-FORMAT"], len(after["db/EBB-SYNCED"]))
	}
}

// TestCompactionOfDamage: a compaction that meets a damaged block ends nothing but itself. The store says so, and what else there is can be
// read, now and after the next start.
func TestCompactionOfDamage(t *testing.T) {
	disk := vfs.NewMem()
	e := open(t, "db", pebblekv.Options{FS: disk})
	r := rand.New(rand.NewPCG(3, 3))
	for range 3 {
		txn := begin(t, e)
		for n := range 1000 {
			txn.Set(fmt.Appendf(nil, "k%04d", n), []byte(value(r)))
		}
		if err := errors.Join(txn.Commit(context.Background(), kv.Synced), e.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	all := readFiles(t, disk, "db")
	for path, b := range all {
		if strings.HasSuffix(path, ".sst") {
			all = all.with(path, flipped(b, len(b)/2))
		}
	}
	disk = all.disk(t)
	for range 2 {
		e = open(t, "db", pebblekv.Options{FS: disk, OnFailure: func(err error) { t.Errorf("it failed: %v", err) }})
		if err := e.Compact(context.Background(), []byte{0}, []byte{255}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("damaged tables were compacted: %v", err)
		}
		checkReadOnly(t, e)
		view, err := e.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := view.Get([]byte("k0001")); err != nil {
			t.Errorf("what is not damaged: %v", err)
		}
		if err := errors.Join(view.Close(), e.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
