package pebblekv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv/inspect"
)

// damagedDir is where logs go that the operator starts without.
const damagedDir = "damaged"

// examine reads the store's files before Pebble does, and refuses those that are damaged. What Pebble cannot read of a log or
// of its list of tables it takes for never written.
func examine(dir string, o Options) (*inspect.Report, error) {
	report, err := inspect.Look(o.FS, dir)
	if err != nil {
		return nil, err
	}
	var damaged *inspect.Error
	if errors.As(report.Err(dir), &damaged) && damaged.OnlyLogs() {
		if !o.StartWithDamagedLog {
			return nil, fmt.Errorf("%w: start it with --startWithDamagedLog to go on from what was written before, and without all that was written since", damaged)
		}
		o.Logger.Error("store: starts without what was written after a log was damaged", "damage", damaged.Error(), "movedTo", o.FS.PathJoin(dir, damagedDir))
		if err := cutLogs(o.FS, dir, report); err != nil {
			return nil, fmt.Errorf("cut damaged logs: %w", err)
		}
		if report, err = inspect.Look(o.FS, dir); err != nil {
			return nil, err
		}
	}
	if err := report.Err(dir); err != nil {
		return nil, fmt.Errorf("%w. Restore a backup, or copy what can be read with 'ebb salvage'", err)
	}
	for _, w := range report.Warnings {
		o.Logger.Warn("store: " + w)
	}
	return report, nil
}

// cutLogs ends the logs where the first damage is. What lies behind is moved aside: it may build on what is lost. A crash in
// between leaves the store damaged as it was.
func cutLogs(disk vfs.FS, dir string, r *inspect.Report) error {
	first := r.Damages[0].Log
	for _, d := range r.Damages {
		first = min(first, d.Log)
	}
	aside := disk.PathJoin(dir, damagedDir)
	if err := disk.MkdirAll(aside, privateFolder); err != nil {
		return err
	}
	slots := slices.Clone(r.Note.Slots)
	forget := func(number uint64, synced int64) {
		for i, s := range slots {
			if s.Kind == inspect.Log && s.Number == number {
				slots[i].Synced = synced
			}
		}
	}
	for _, s := range slots {
		if s.Kind == inspect.Log && s.Number >= first {
			forget(s.Number, 0)
		}
	}
	for _, l := range slices.Backward(r.Logs) {
		if l.Number < first {
			break
		}
		var err error
		if l.Number > first {
			err = disk.Rename(disk.PathJoin(dir, l.Name), disk.PathJoin(aside, l.Name))
		} else {
			err = cutLog(disk, dir, aside, l)
			forget(l.Number, l.Scan.End+restOfBlock(l.Scan.End)+endOfLog)
		}
		if err != nil {
			return err
		}
	}
	if len(r.Logs) == 0 || r.Logs[0].Number > first { // there was a log: Pebble makes one
		if err := emptyLog(disk, dir, first); err != nil {
			return err
		}
	}
	return errors.Join(syncDir(disk, aside), syncDir(disk, dir), writeNote(disk, dir, slots))
}

// endOfLog is how many bytes end a log.
const endOfLog = 11

// logEnd is what a log ends with that was closed in order.
func logEnd(number uint64) []byte {
	b := make([]byte, endOfLog)
	b[6] = 5
	binary.LittleEndian.PutUint32(b[7:], uint32(number)+1)
	return b
}

// restOfBlock is how many bytes of a block nothing begins in behind a record's end.
func restOfBlock(end int64) int64 {
	const block, header = 32 << 10, 19
	if left := block - end%block; left < header {
		return left
	}
	return 0
}

func emptyLog(disk vfs.FS, dir string, number uint64) error {
	return replaceFile(disk, dir, fmt.Sprintf("%06d.log", number), logEnd(number))
}

// cutLog puts the whole records of a log in its place.
func cutLog(disk vfs.FS, dir, aside string, l inspect.LogFile) error {
	path := disk.PathJoin(dir, l.Name)
	from, err := disk.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	file, err := disk.Create(path+tempSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.LimitReader(from, l.Scan.End))
	if err == nil {
		_, err = file.Write(append(make([]byte, restOfBlock(l.Scan.End)), logEnd(l.Number)...))
	}
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := disk.Link(path, disk.PathJoin(aside, l.Name)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return disk.Rename(path+tempSuffix, path)
}

// openPebble opens the store. Pebble panics where it finds what nobody can have written.
func openPebble(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its files hold what nobody can have written: %v", r)
		}
	}()
	return pebble.Open(dir, o)
}
