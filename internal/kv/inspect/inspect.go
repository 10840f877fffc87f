// Package inspect reads the files of a Pebble store before anybody opens it, and names what is damaged: a bad record that
// others follow, a file that is shorter than it was, one that is missing. Pebble takes the first record that it cannot read for
// the end, and what follows for never written. It changes nothing, and knows nothing of what the keys mean.
package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Report is what is found in a store.
type Report struct {
	// Fresh: there is no store yet.
	Fresh    bool
	Manifest string // the name of the file
	Edits    Scan   // of it
	Tables   Tables
	// Logs are those that hold what no table does, in their order.
	Logs    []LogFile
	Note    Note
	Damages []Damage
	// Warnings are what an operator should know although nothing is lost.
	Warnings []string
	// FoundTables is how many files of tables there are, whether the manifest lists them or not.
	FoundTables int
}

// LogFile is a log.
type LogFile struct {
	Number uint64
	Name   string
	Scan   Scan
}

// Err is the damage as an error, or nil.
func (r *Report) Err(dir string) error {
	if len(r.Damages) == 0 {
		return nil
	}
	return &Error{dir, r.Damages}
}

// inspection is a Report on its way.
type inspection struct {
	Report
	disk      vfs.FS
	dir       string
	names     map[string]bool
	logs      map[uint64]string
	hasFormat bool
	newest    string // of all manifests
}

// Look reads the store in dir.
func Look(disk vfs.FS, dir string) (*Report, error) {
	i := &inspection{disk: disk, dir: dir, names: map[string]bool{}, logs: map[uint64]string{}}
	names, err := disk.List(dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	if err := i.sort(names); err != nil {
		return nil, err
	}
	if i.Note, err = ReadNote(disk, dir); err != nil {
		return nil, fmt.Errorf("read %s: %w", NoteFile, err)
	}
	if err := i.look(); err != nil {
		return nil, err
	}
	return &i.Report, nil
}

const (
	manifestPrefix = "MANIFEST-"
	// MarkerPrefix is what the name of the file begins with that names the manifest. There is one in every store.
	MarkerPrefix = "marker.manifest."
	formatPrefix = "marker.format-version."
)

// sort tells the files apart.
func (i *inspection) sort(names []string) error {
	latest := uint64(0)
	for _, name := range names {
		i.names[name] = true
		number, suffix, _ := strings.Cut(name, ".")
		n, err := strconv.ParseUint(number, 10, 64)
		switch {
		case strings.HasPrefix(name, formatPrefix):
			i.hasFormat = true
		case strings.HasPrefix(name, MarkerPrefix):
			text, manifest, _ := strings.Cut(strings.TrimPrefix(name, MarkerPrefix), ".")
			turn, err := strconv.ParseUint(text, 10, 64)
			if err != nil || !strings.HasPrefix(manifest, manifestPrefix) {
				return fmt.Errorf("%s is not the name of a marker", name)
			}
			if turn >= latest {
				latest, i.Manifest = turn, manifest
			}
		case strings.HasPrefix(name, manifestPrefix):
			i.newest = max(i.newest, name) // the numbers have the same length, as a rule
		case err != nil:
		case suffix == "log":
			i.logs[n] = name
		case suffix == "sst":
			i.FoundTables++
		}
	}
	return nil
}

func (i *inspection) damage(file string, offset int64, format string, args ...any) {
	i.Damages = append(i.Damages, Damage{File: file, Offset: offset, Text: fmt.Sprintf(format, args...)})
}

func (i *inspection) warn(format string, args ...any) {
	i.Warnings = append(i.Warnings, fmt.Sprintf(format, args...))
}

func (i *inspection) look() error {
	if i.Manifest == "" {
		i.lookWithoutMarker()
		if i.Manifest = i.newest; i.Fresh || i.Manifest == "" {
			return i.lookAtLogs()
		}
	}
	if i.Note.Found && !i.Note.Whole {
		i.warn("%s is damaged: how far the logs were synced is known in part only", NoteFile)
	}
	if err := i.lookAtManifest(); err != nil {
		return err
	}
	i.lookAtTables()
	if err := i.lookAtLogs(); err != nil {
		return err
	}
	i.lookAtFormat()
	return nil
}

// lookWithoutMarker: a marker is there before the first log is. Without one the newest manifest tells most of what can be had.
func (i *inspection) lookWithoutMarker() {
	if len(i.logs) > 0 || i.FoundTables > 0 {
		i.damage(MarkerPrefix+"*", -1, "is missing, which names the list of tables, and there are %d tables and %d logs", i.FoundTables, len(i.logs))
		return
	}
	for _, s := range i.Note.Slots {
		if s.Kind == Log && s.Synced > 0 {
			i.damage(logName(s.Number), -1, "is missing, and so is all else: it was synced up to offset %d", s.Synced)
		}
	}
	i.Fresh = len(i.Damages) == 0
}

func (i *inspection) open(name string) (vfs.File, error) {
	return i.disk.Open(i.disk.PathJoin(i.dir, name))
}

func (i *inspection) lookAtManifest() error {
	file, err := i.open(i.Manifest)
	if errors.Is(err, fs.ErrNotExist) {
		i.damage(i.Manifest, -1, "is missing, the list of all tables")
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", i.Manifest, err)
	}
	defer file.Close()
	s, tables, err := readManifest(file)
	i.Edits, i.Tables = s, tables
	if err != nil {
		i.damage(i.Manifest, s.Whole, "an edit of the list of tables cannot be read: %v", err)
		return nil
	}
	number, _ := strconv.ParseUint(strings.TrimPrefix(i.Manifest, manifestPrefix), 10, 64)
	synced, known := i.Note.Synced(Manifest, number)
	switch {
	case known && s.Whole < synced:
		i.damage(i.Manifest, s.Whole, "the list of tables was synced up to offset %d, and %d bytes of that cannot be read", synced, synced-s.Whole)
	case s.Records == 0:
		i.damage(i.Manifest, s.Whole, "the list of tables cannot be read")
	case s.Tail == Torn && s.Behind.Chunks > 0:
		i.damage(i.Manifest, s.Whole, "%d edits of the list of tables follow what cannot be read", s.Behind.Chunks)
	case !known && s.Tail == Torn && !isCutOff(s, i.disk, i.dir, i.Manifest):
		i.damage(i.Manifest, s.Whole, "the last %d bytes of the list of tables cannot be read", s.Size-s.Whole)
	case s.Tail != Cut:
		i.warn("%s ends in %d bytes that were never synced: they are left out", i.Manifest, s.Size-s.End)
	}
	return nil
}

// isCutOff says whether what cannot be read is a chunk that the file ends within, or one after which more of its record should
// follow.
func isCutOff(s Scan, disk vfs.FS, dir, name string) bool {
	if s.Whole == s.Size {
		return true
	}
	file, err := disk.Open(disk.PathJoin(dir, name))
	if err != nil {
		return false
	}
	defer file.Close()
	b := make([]byte, min(s.Size-s.Whole, blockSize))
	if _, err := file.ReadAt(b, s.Whole); err != nil {
		return false
	}
	if len(b) < plainHeader {
		return true
	}
	_, size, _ := format{}.at(b)
	return size > len(b) && s.Whole+int64(len(b)) == s.Size
}

// lookAtTables looks whether those that are listed are there, as large as they were.
func (i *inspection) lookAtTables() {
	for _, files := range []struct {
		suffix string
		sizes  map[uint64]uint64
	}{{"sst", i.Tables.Live}, {"blob", i.Tables.Blobs}} {
		for _, number := range sorted(files.sizes) {
			name := fmt.Sprintf("%06d.%s", number, files.suffix)
			info, err := i.disk.Stat(i.disk.PathJoin(i.dir, name))
			switch want := int64(files.sizes[number]); {
			case errors.Is(err, fs.ErrNotExist):
				i.damage(name, -1, "is missing, a table that %s lists", i.Manifest)
			case err != nil:
				i.damage(name, -1, "cannot be looked at: %v", err)
			case info.Size() != want:
				i.damage(name, -1, "has %d bytes and should have %d", info.Size(), want)
			}
		}
	}
}

func sorted[V any](m map[uint64]V) []uint64 {
	var keys []uint64
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// lookAtFormat: a store without the marker of its format is one whose making was cut off, and holds nothing.
func (i *inspection) lookAtFormat() {
	records := slices.ContainsFunc(i.Logs, func(l LogFile) bool { return l.Scan.Records > 0 })
	if !i.hasFormat && (records || i.FoundTables > 0) {
		i.damage(formatPrefix+"*", -1, "is missing, which tells the form of the files")
	}
}

func logName(number uint64) string { return fmt.Sprintf("%06d.log", number) }

func (i *inspection) lookAtLogs() error {
	for _, number := range sorted(i.logs) {
		if number >= i.Tables.MinLog {
			i.Logs = append(i.Logs, LogFile{Number: number, Name: i.logs[number]})
		}
	}
	for at := range i.Logs {
		if err := i.lookAtLog(&i.Logs[at], at == len(i.Logs)-1); err != nil {
			return err
		}
	}
	i.lookForLogs()
	slices.SortStableFunc(i.Damages, func(a, b Damage) int { return cmp.Compare(a.Log, b.Log) })
	return nil
}

// lookForLogs looks for those that are missing.
func (i *inspection) lookForLogs() {
	for _, s := range i.Note.Slots {
		if s.Kind == Log && s.Synced > 0 && s.Number >= i.Tables.MinLog && i.logs[s.Number] == "" {
			i.damageLog(s.Number, -1, "is missing: %d bytes of it were synced", s.Synced)
		}
	}
	if i.hasFormat && len(i.logs) == 0 && len(i.Damages) == 0 {
		i.damageLog(max(i.Tables.MinLog, 1), -1, "or a later log is missing: there is none at all")
	}
}

func (i *inspection) damageLog(number uint64, offset int64, format string, args ...any) {
	i.damage(logName(number), offset, format, args...)
	i.Damages[len(i.Damages)-1].Log = number
}

// lookAtLog: a log that another follows was closed in order before that one was made. The last may end anywhere behind what
// was synced.
func (i *inspection) lookAtLog(l *LogFile, last bool) error {
	file, err := i.open(l.Name)
	if err != nil {
		return fmt.Errorf("open %s: %w", l.Name, err)
	}
	defer file.Close()
	s, err := scan(file, format{true, uint32(l.Number)}, func([]byte) error { return nil })
	if err != nil {
		return fmt.Errorf("read %s: %w", l.Name, err)
	}
	l.Scan = s
	synced, known := i.Note.Synced(Log, l.Number)
	behind := s.Behind
	switch {
	case known && s.Whole < synced:
		i.damageLog(l.Number, s.Whole, "it was synced up to offset %d, and %d bytes of that cannot be read (%d of them may be whole)", synced, synced-s.Whole, behind.Bytes)
	case s.Tail == Ended:
	case !last:
		i.damageLog(l.Number, s.Whole, "the log goes on behind that: it was closed in order before the next was begun, and its end is missing (%d bytes follow, %d of them may be whole)", s.Size-s.Whole, behind.Bytes)
	case behind.Synced > s.Whole || behind.Marks > 1:
		i.damageLog(l.Number, s.Whole, "what follows was written after that was synced: %d records, %d bytes", behind.Chunks, behind.Bytes)
	case !known && behind.Chunks+behind.Hidden > 0:
		i.damageLog(l.Number, s.Whole, "%d records follow what cannot be read", behind.Chunks+behind.Hidden)
	case s.Tail == Torn:
		i.warn("%s ends in %d bytes that were written in part and never synced: they are left out", l.Name, s.Size-s.End)
	}
	return nil
}
