package expr

import (
	"math"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// DateUnit is a unit of time of the calendar.
type DateUnit uint8

// The units, small to large.
const (
	Millisecond DateUnit = iota
	Second
	Minute
	Hour
	Day
	Week
	Month
	Quarter
	Year
)

func unitNames() []string {
	return []string{"millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"}
}

// DateUnitNamed is the unit of that name.
func DateUnitNamed(name string) (DateUnit, bool) {
	for i, n := range unitNames() {
		if n == name {
			return DateUnit(i), true
		}
	}
	return 0, false
}

func (u DateUnit) String() string { return unitNames()[u] }

// Millis is the length of a unit that always has the same, else 0.
func (u DateUnit) Millis() int64 {
	switch u {
	case Millisecond:
		return 1
	case Second:
		return 1000
	case Minute:
		return 60_000
	case Hour:
		return 3_600_000
	case Day:
		return 86_400_000
	case Week:
		return 7 * 86_400_000
	}
	return 0
}

// maxDateAmount is more units of a kind than any date can be moved by.
const (
	maxYears  = 300_000_000
	maxDays   = 1 << 40
	minDateMS = math.MinInt64
)

// amountLimit is what $dateAdd takes less than: about as many units as there are between the first date and the last.
func (u DateUnit) amountLimit() int64 {
	const days = math.MaxUint64/86_400_000 + 1
	const years = days/365 + 1
	switch u {
	case Millisecond:
		return math.MaxInt64
	case Week:
		return days / 7
	case Month:
		return years * 12
	case Quarter:
		return years * 4
	case Year:
		return years
	}
	return days * (Day.Millis() / u.Millis())
}

// AddDate moves a date by n units, and says whether the result is a date. Months, quarters and years keep the day, cut to the
// month's length, and the time of day in the zone; nil is UTC.
func AddDate(ms int64, u DateUnit, n int64, z *time.Location) (int64, bool) {
	if n == 0 { // a local time that comes twice would be told as the other moment
		return ms, true
	}
	switch u {
	case Month, Quarter, Year:
		months := map[DateUnit]int64{Month: 1, Quarter: 3, Year: 12}[u]
		if n > maxYears*12/months || n < -maxYears*12/months {
			return 0, false
		}
		return addMonths(ms, n*months, z)
	case Day, Week:
		if n > maxDays || n < -maxDays {
			return 0, false
		}
		days := n * (u.Millis() / Day.Millis())
		if isUTC(z) {
			return addMillis(ms, days, Day.Millis())
		}
		t := inZone(ms, z)
		wall := time.Date(t.Year(), t.Month(), t.Day()+int(days), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		return millisOf(whenLocal(wall, z))
	}
	return addMillis(ms, n, u.Millis())
}

func addMonths(ms, n int64, z *time.Location) (int64, bool) {
	t := inZone(ms, z)
	month := int64(t.Month()) - 1 + n
	year := int64(t.Year()) + floorDiv(month, 12)
	m := time.Month(month-floorDiv(month, 12)*12) + 1
	if year > 292_278_994 || year < -292_275_055 {
		return 0, false
	}
	day := min(t.Day(), monthDays(int(year), m))
	wall := time.Date(int(year), m, day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	return millisOf(whenLocal(wall, t.Location()))
}

// millisOf is t in milliseconds, and whether they fit.
func millisOf(t time.Time) (int64, bool) {
	ms := t.UnixMilli()
	return ms, time.UnixMilli(ms).Equal(t)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// DiffDates counts the boundaries of units between two dates in a zone; weeks start on first.
func DiffDates(from, to int64, u DateUnit, z *time.Location, first time.Weekday) int64 {
	a, b := inZone(from, z), inZone(to, z)
	switch u {
	case Year:
		return int64(b.Year() - a.Year())
	case Quarter:
		return int64(b.Year()-a.Year())*4 + int64((b.Month()-1)/3-(a.Month()-1)/3)
	case Month:
		return int64(b.Year()-a.Year())*12 + int64(b.Month()-a.Month())
	case Week:
		// Days since any day that a week started on; 1970-01-01 was a Thursday.
		shift := (int64(time.Thursday) - int64(first) + 7) % 7
		return floorDiv(localDays(b)+shift, 7) - floorDiv(localDays(a)+shift, 7)
	case Day:
		return localDays(b) - localDays(a)
	case Hour:
		return localUnits(b, 3600) - localUnits(a, 3600) + (offsetOf(a)-offsetOf(b))/3600
	case Minute:
		return localUnits(b, 60) - localUnits(a, 60) + (offsetOf(a)-offsetOf(b))/60
	case Second:
		return floorDiv(to, 1000) - floorDiv(from, 1000)
	}
	return to - from
}

func offsetOf(t time.Time) int64 {
	_, offset := t.Zone()
	return int64(offset)
}

func localDays(t time.Time) int64 { return localUnits(t, 86400) }

// localUnits is the number of units of so many seconds since 1970 on the local clock.
func localUnits(t time.Time, seconds int64) int64 {
	return floorDiv(floorDiv(t.UnixMilli(), 1000)+offsetOf(t), seconds)
}

// TruncDate cuts a date off to a multiple of size units, counted from 2000 on in a zone; weeks start on first.
func TruncDate(ms int64, u DateUnit, size int64, z *time.Location, first time.Weekday) (int64, bool) {
	zone := z
	if zone == nil {
		zone = time.UTC
	}
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, zone)
	if u == Week { // 2000-01-01 was a Saturday
		start = start.AddDate(0, 0, (int(first)-int(time.Saturday)+7)%7)
	}
	ref := start.UnixMilli()
	if u <= Hour {
		bin := size * u.Millis()
		// A difference that does not fit is more than any bin.
		diff := ms - ref
		if (diff < ms) != (ref > 0) && ref != 0 {
			return 0, false
		}
		return ref + floorDiv(diff, bin)*bin, true
	}
	n := DiffDates(ref, ms, u, z, first)
	return AddDate(ref, u, floorDiv(n, size)*size, z)
}

func weekdayNamed(v bson.Value, op string) (time.Weekday, error) {
	if v.Type != bson.TypeString {
		return 0, mongoerr.New(5439015, "%s requires 'startOfWeek' to be a string, but got %s", op, v.Type)
	}
	name := strings.ToLower(v.Str())
	for d := time.Sunday; d <= time.Saturday; d++ {
		long := strings.ToLower(d.String())
		if name == long || name == long[:3] {
			return d, nil
		}
	}
	return 0, mongoerr.New(5439016, "%s parameter 'startOfWeek' value cannot be recognized as a day of a week: %s", op, v.Str())
}
