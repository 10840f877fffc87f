package expr

import (
	archive "archive/zip"
	_ "embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// maxZones is how many zones an Env remembers.
const maxZones = 64

// zoneFile holds the zones: a copy of lib/time/zoneinfo.zip of the Go that Ebb is built with. time.LoadLocation would rather take those
// of the machine, so that the members of a replica set could have others, by name and by rule.
//
//go:embed zoneinfo.zip
var zoneFile string

var zones = sync.OnceValues(func() (*archive.Reader, error) {
	return archive.NewReader(strings.NewReader(zoneFile), int64(len(zoneFile)))
})

// zoneOf reads a time zone: the name of one, or an offset such as +04:45, +0445 or +04. A missing argument is UTC.
func (e *Env) zoneOf(v bson.Value) (*time.Location, error) {
	if v.Type != bson.TypeString {
		return nil, mongoerr.New(40517, "timezone must evaluate to a string, found %s", v.Type)
	}
	name := v.Str()
	if z, ok := e.zones[name]; ok {
		return z, nil
	}
	z, err := loadZone(name)
	if err != nil {
		return nil, err
	}
	if e.zones == nil || len(e.zones) >= maxZones {
		e.zones = make(map[string]*time.Location)
	}
	e.zones[string(append([]byte(nil), name...))] = z
	return z, nil
}

func loadZone(name string) (*time.Location, error) {
	unknown := mongoerr.New(40485, "unrecognized time zone identifier: \"%s\"", name)
	if name == "" {
		return nil, unknown
	}
	if name[0] == '+' || name[0] == '-' {
		seconds, ok := parseOffset(name)
		if !ok {
			return nil, unknown
		}
		return time.FixedZone(name, seconds), nil
	}
	all, err := zones()
	if err != nil {
		return nil, fmt.Errorf("read the time zones: %w", err)
	}
	rules, err := fs.ReadFile(all, name)
	if err != nil {
		return nil, unknown
	}
	z, err := time.LoadLocationFromTZData(strings.Clone(name), rules)
	if err != nil {
		return nil, err
	}
	if table, ok := withTable(rules, z); ok {
		return time.LoadLocationFromTZData(z.String(), table)
	}
	return z, nil
}

// parseOffset reads +hh, +hhmm or +hh:mm.
func parseOffset(s string) (seconds int, ok bool) {
	digits := s[1:]
	if len(digits) == 5 && digits[2] == ':' {
		digits = digits[:2] + digits[3:]
	}
	if len(digits) != 2 && len(digits) != 4 {
		return 0, false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
	}
	hours, _ := strconv.Atoi(digits[:2])
	minutes := 0
	if len(digits) == 4 {
		minutes, _ = strconv.Atoi(digits[2:])
	}
	seconds = hours*3600 + minutes*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// isUTC says whether moments in z are written as in UTC.
func isUTC(z *time.Location) bool {
	return z == nil || z == time.UTC || z.String() == "UTC" || z.String() == "GMT"
}

// inZone is a moment in a zone, nil meaning UTC.
func inZone(ms int64, z *time.Location) time.Time {
	t := time.UnixMilli(ms).UTC()
	if z != nil {
		t = t.In(z)
	}
	return t
}

// whenLocal is when clocks in z show what wall shows in UTC. A time that a change of the clocks skips is told by the offset before it, as
// by MongoDB: 02:30 is then the moment that shows 03:30. time.Date takes one side or the other.
func whenLocal(wall time.Time, z *time.Location) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), z)
	if shown := t.Unix() + offsetOf(t); shown < wall.Unix() { // told by the offset after the change
		return wall.Add(-time.Duration(offsetOf(t)) * time.Second).In(z)
	}
	return t
}

// momentOf is the moment of a date, timestamp or ObjectId.
func momentOf(v bson.Value) (int64, error) {
	ms, ok := dateOf(v)
	if !ok {
		return 0, mongoerr.New(16006, "can't convert from BSON type %s to Date", v.Type)
	}
	return ms, nil
}
