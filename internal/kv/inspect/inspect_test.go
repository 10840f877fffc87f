package inspect

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// made are the bytes of the log and the manifest of a small store.
func made(t testing.TB) (log, manifest []byte, disk *vfs.MemFS) {
	t.Helper()
	disk = vfs.NewMem()
	db, err := pebble.Open("db", &pebble.Options{FS: disk, FormatMajorVersion: pebble.FormatValueSeparation, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 200 {
		if err := db.Set([]byte{'k', byte(n)}, bytes.Repeat([]byte{byte(n)}, 900), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		if n == 50 {
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := Look(disk, "db")
	if err != nil || len(report.Damages) > 0 {
		t.Fatal(report, err)
	}
	last := report.Logs[len(report.Logs)-1]
	if last.Scan.Records != 149 || last.Scan.Tail != Ended || len(report.Tables.Live) != 1 || report.Edits.Tail != Cut {
		t.Fatalf("log %+v, manifest %+v, tables %v", last.Scan, report.Edits, report.Tables.Live)
	}
	return content(t, disk, last.Name), content(t, disk, report.Manifest), disk
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(string, ...any) { panic("fatal") }

func content(t testing.TB, disk vfs.FS, name string) []byte {
	t.Helper()
	file, err := disk.Open(disk.PathJoin("db", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// numberOf is the number of the log, as its first record says it.
func numberOf(log []byte) uint32 { return binary.LittleEndian.Uint32(log[plainHeader:]) }

// TestScanOfDamage flips each bit of some bytes of each block: the records before are read, and those behind are found.
func TestScanOfDamage(t *testing.T) {
	log, _, _ := made(t)
	whole, err := scan(bytes.NewReader(log), format{true, numberOf(log)}, func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for at := 3; at < len(log)-2000; at += 997 {
		b := bytes.Clone(log)
		b[at] ^= 16
		records, all := 0, 0
		s, err := scan(bytes.NewReader(b), format{true, numberOf(log)}, func([]byte) error { records++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if s.Tail != Torn || s.Whole > int64(at) || s.Whole < int64(at)-2000 || s.Behind.Chunks+s.Behind.Hidden == 0 || records != s.Records {
			t.Errorf("byte %d: %+v", at, s)
		}
		if _, err := scanAll(bytes.NewReader(b), format{true, numberOf(log)}, func([]byte) error { all++; return nil }); err != nil || all < whole.Records-40 {
			t.Errorf("byte %d: %d of %d records, %v", at, all, whole.Records, err)
		}
	}
}

// FuzzFiles reads what may be on a disk: it ends, without a panic, and what is whole lies within the file.
func FuzzFiles(f *testing.F) {
	log, manifest, _ := made(f)
	note := append(Head(), make([]byte, NoteSlots*SlotBytes)...)
	Slot{Log, 7, 1000}.Put(note[SlotBytes:])
	for _, b := range [][]byte{nil, log, manifest, note, log[:len(log)/2], make([]byte, 100)} {
		f.Add(b)
	}
	number := numberOf(log)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, read := range []func() (Scan, error){
			func() (Scan, error) {
				return scanAll(bytes.NewReader(b), format{true, number}, func(record []byte) error { return new(logged).add(record) })
			},
			func() (Scan, error) { s, _, err := readManifest(bytes.NewReader(b)); return s, err },
		} {
			if s, err := read(); err == nil && (s.Size != int64(len(b)) || s.End > s.Whole || s.Whole > s.Size) {
				t.Errorf("%+v of %d bytes", s, len(b))
			}
		}
		for _, s := range parseNote(b).Slots {
			if s.Synced < 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}
