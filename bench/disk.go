package main

import (
	"os"
	"path/filepath"
	"strings"
)

// disk is what a folder's files occupy, not how long they are: journals are made larger than what is written to them.
type disk struct{ total, journal, reserve int64 }

// data is what lies there for good. A journal's files are used again and again; they stay as many as they were at the
// busiest time. A reserve is of one size whatever is stored.
func (d disk) data() int64 { return d.total - d.journal - d.reserve }

func diskUsage(folder string) (d disk) {
	_ = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // files come and go
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		d.total += occupied(info)
		switch {
		case isJournal(path):
			d.journal += occupied(info)
		case filepath.Base(path) == "EBB-RESERVE": // for letting data go on a full disk
			d.reserve += occupied(info)
		}
		return nil
	})
	return d
}

// isJournal knows Pebble's logs, Ebb's spare one, WiredTiger's and PostgreSQL's.
func isJournal(path string) bool {
	folder, name := filepath.Split(path)
	return strings.HasSuffix(name, ".log") || name == "EBB-LOG-SPARE" || strings.HasPrefix(name, "WiredTigerLog") || strings.HasPrefix(name, "WiredTigerPreplog") ||
		filepath.Base(folder) == "pg_wal"
}
