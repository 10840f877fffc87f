package expr

import (
	archive "archive/zip"
	"io"
	"strings"
	"testing"
	"time"
)

// TestZoneTable: each zone shows with its table what it shows by its rule, in the table, around each of its changes, and behind its end.
func TestZoneTable(t *testing.T) {
	all, err := archive.NewReader(strings.NewReader(zoneFile), int64(len(zoneFile)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		file, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		slim, err := time.LoadLocationFromTZData(f.Name, file)
		if err != nil {
			t.Fatal(f.Name, err)
		}
		table, ok := withTable(file, slim)
		if !ok {
			t.Errorf("%s has no table", f.Name)
			continue
		}
		full, err := time.LoadLocationFromTZData(f.Name, table)
		if err != nil {
			t.Fatal(f.Name, err)
		}
		same := func(at time.Time) {
			name, offset := at.In(slim).Zone()
			if n, o := at.In(full).Zone(); n != name || o != offset || at.In(slim).IsDST() != at.In(full).IsDST() {
				t.Errorf("%s at %d: %s %d, not %s %d", f.Name, at.Unix(), n, o, name, offset)
			}
		}
		for at := time.Date(-3000, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 3000; at = at.AddDate(0, 0, 3001) {
			same(at)
		}
		for at := time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2110; {
			_, end := at.In(full).ZoneBounds()
			if end.IsZero() {
				break
			}
			same(end.Add(-time.Second))
			same(end)
			at = later(at, end)
		}
		for at := time.Date(1850, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2103; at = at.AddDate(0, 0, 17) {
			same(at)
		}
	}
}

// later is end, or a little behind at where it is not later: package time takes a leap year's last day for the next year's first.
func later(at, end time.Time) time.Time {
	if end.After(at) {
		return end
	}
	return at.AddDate(0, 0, 2)
}
