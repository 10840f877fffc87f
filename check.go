package ebb

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/dbpath"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/inspect"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/member"
)

// Checked is what Check has found.
type Checked struct {
	// Damages are lines that each name a file, what is wrong with it and what is lost.
	Damages []string
	// Foreign are lines about forms that this version of Ebb does not know: what else is found may be no damage at all.
	Foreign []string
	// Warnings are lines about what is worth knowing although nothing is lost.
	Warnings []string
	// Tables and Logs are how many were read.
	Tables, Logs int
}

// Check reads all files of the data directory's store, every block of every table too, and changes nothing. No server may use the
// directory meanwhile. progress is told each table before it is read; it may be nil.
func Check(path string, progress func(table string)) (c *Checked, err error) {
	held, err := dbpath.Look(path)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	store := filepath.Join(path, storeDir)
	if err := checkStoreDir(path); err != nil {
		return &Checked{Damages: []string{err.Error()}}, nil
	}
	c = &Checked{}
	report, err := c.look(store, progress)
	if err != nil {
		return nil, err
	}
	if log := filepath.Join(path, member.LogDir); member.HasLog(vfs.Default, path) {
		if _, err := c.look(log, progress); err != nil {
			return nil, err
		}
	}
	for _, err := range []error{dbpath.CheckMarker(path), pebblekv.CheckFiles(vfs.Default, store)} {
		switch {
		case err == nil || report.Fresh:
		case errors.Is(err, dbpath.ErrFormat), errors.Is(err, kv.ErrFormat):
			c.Foreign = append(c.Foreign, err.Error())
		default:
			c.Damages = append(c.Damages, err.Error())
		}
	}
	if report.Fresh {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s holds no store yet", store))
	}
	return c, nil
}

// look reads the files of a store.
func (c *Checked) look(dir string, progress func(table string)) (*inspect.Report, error) {
	report, err := inspect.Look(vfs.Default, dir)
	if err != nil {
		return nil, err
	}
	inspect.CheckTables(vfs.Default, dir, report, func(name string) {
		c.Tables++
		if progress != nil {
			progress(name)
		}
	})
	c.Logs += len(report.Logs)
	c.Warnings = append(c.Warnings, report.Warnings...)
	for _, d := range report.Damages {
		c.Damages = append(c.Damages, d.String())
	}
	return report, nil
}
