package expr

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func evalDateFromString(env *Env, c *call) (bson.Value, error) {
	text, err := c.args[0].Eval(env)
	if err != nil {
		return text, err
	}
	format, err := c.arg(env, 1)
	if err != nil {
		return format, err
	}
	hasFormat := c.args[1] != nil
	if hasFormat && !format.IsNullish() {
		if err := checkFormat(format, "$dateFromString", 40684, parseSpecifiers); err != nil {
			return format, err
		}
	}
	zone, null, err := c.zone(env, 2)
	switch {
	case text.IsNullish() && c.args[4] != nil:
		return c.args[4].Eval(env)
	case text.IsNullish():
		return bson.Null, nil
	case err != nil:
		return text, err
	case (null || hasFormat && format.IsNullish()) && text.Type == bson.TypeString:
		return bson.Null, nil
	}
	ms, err := dateFromText(text, format, zone)
	if c.args[3] != nil && mongoerr.Is(err, mongoerr.ConversionFailure) {
		return c.args[3].Eval(env)
	}
	return env.Date(ms), err
}

func dateFromText(text, format bson.Value, zone *time.Location) (int64, error) {
	if text.Type != bson.TypeString {
		return 0, errConversion("$dateFromString requires that 'dateString' be a string, found: %s with value %s", text.Type, text)
	}
	if format.IsMissing() {
		return parseDateText(text.Str(), zone)
	}
	return parseFormatted(text.Str(), format.Str(), zone)
}

func errDateText(s, why string) error {
	return errConversion("Error parsing date string '%s'; %s", s, why)
}

// errIncomplete is for a text that leaves out a part that no format stands in for.
func errIncomplete(s string) error {
	return errConversion("an incomplete date/time string has been found, with elements missing: \"%s\"", s)
}

// civil is what a text tells of a date; -1 is what it does not tell.
type civil struct {
	year, month, day                 int
	hour, minute, second, millis     int
	isoYear, isoWeek, isoDay, day366 int
	weekday                          int // 0 for Sunday: the date is the next such day
	offset                           int // seconds east of UTC, when hasOffset
	hasOffset                        bool
	zone                             string // the short name that tells the offset; "" where it is a number
}

// none is no year.
const none = -1 << 31

func noDate() civil {
	return civil{year: none, month: -1, day: -1, hour: -1, minute: -1, second: -1, millis: -1, isoYear: -1, isoWeek: -1, isoDay: -1, day366: -1, weekday: -1}
}

// moment checks the parts and puts them together.
func (d civil) moment(s string, zone *time.Location) (int64, error) {
	if d.hasOffset {
		switch {
		case isUTC(zone):
		case d.zone == "":
			return 0, errConversion("you cannot pass in a date/time string with GMT offset together with a timezone argument")
		default:
			return 0, errConversion("you cannot pass in a date/time string with time zone information ('%s') together with a timezone argument", d.zone)
		}
		zone = time.FixedZone("", d.offset)
	}
	if zone == nil {
		zone = time.UTC
	}
	hour, minute, second, millis := max(d.hour, 0), max(d.minute, 0), max(d.second, 0), max(d.millis, 0)
	if hour > 24 || minute > 59 || second > 59 {
		return 0, errDateText(s, "unexpected character")
	}
	iso := d.isoYear >= 0 || d.isoWeek >= 0 || d.isoDay >= 0
	switch {
	case iso && (d.year != none || d.month >= 0 || d.day >= 0):
		return 0, errDateText(s, "mixing of ISO dates with natural dates is not allowed")
	case iso:
		if d.isoYear < 0 {
			return 0, errIncomplete(s)
		}
		week, day := max(d.isoWeek, 1), max(d.isoDay, 1)
		if d.isoWeek == 0 || d.isoWeek > 53 || d.isoDay == 0 || d.isoDay > 7 {
			return 0, errDateText(s, "out of range")
		}
		t := isoDate(d.isoYear, week, day)
		return whenLocal(time.Date(t.Year(), t.Month(), t.Day(), hour, minute, second, millis*1e6, time.UTC), zone).UnixMilli(), nil
	case d.year == none, d.day366 < 0 && (d.month < 0 || d.day < 0):
		return 0, errIncomplete(s)
	}
	month, day := d.month, d.day
	if d.day366 >= 0 {
		month, day = 1, d.day366+1 // MongoDB counts from 0 here, and on into the next year
	} else if d.month == 0 || d.day == 0 || month > 12 || day > monthDays(d.year, time.Month(month)) {
		return 0, errDateText(s, "out of range")
	}
	if d.weekday >= 0 {
		day += (d.weekday - int(time.Date(d.year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Weekday()) + 7) % 7
	}
	return whenLocal(time.Date(d.year, time.Month(month), day, hour, minute, second, millis*1e6, time.UTC), zone).UnixMilli(), nil
}

func monthDays(year int, m time.Month) int {
	return time.Date(year, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// isoDate is a day by its ISO week.
func isoDate(year, week, day int) time.Time {
	fourth := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC) // always in week 1
	return fourth.AddDate(0, 0, (week-1)*7+day-isoWeekday(fourth))
}

// parseFormatted reads s by a format that has been checked.
func parseFormatted(s, format string, zone *time.Location) (int64, error) {
	d := noDate()
	rest := s
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			if rest == "" || rest[0] != format[i] {
				return 0, errDateText(s, "format literal not found")
			}
			rest = rest[1:]
			continue
		}
		i++
		var ok bool
		if rest, ok = d.read(rest, format[i]); !ok {
			return 0, errDateText(s, "the text does not match '%"+format[i:i+1]+"'")
		}
	}
	if rest != "" {
		return 0, errDateText(s, "trailing data")
	}
	return d.moment(s, zone)
}

// read takes what a specifier stands for from the start of s.
func (d *civil) read(s string, specifier byte) (rest string, ok bool) {
	digits := func(into *int, most int) (string, bool) {
		n := 0
		for n < len(s) && n < most && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		if n == 0 {
			return s, false
		}
		*into, _ = strconv.Atoi(s[:n])
		return s[n:], true
	}
	switch specifier {
	case 'd':
		return digits(&d.day, 2)
	case 'm':
		return digits(&d.month, 2)
	case 'Y':
		return digits(&d.year, 4)
	case 'H':
		return digits(&d.hour, 2)
	case 'M':
		return digits(&d.minute, 2)
	case 'S':
		return digits(&d.second, 2)
	case 'L':
		return d.readMillis(s)
	case 'j':
		if d.year == none {
			return s, false // a day of what year?
		}
		return digits(&d.day366, 3)
	case 'G':
		return digits(&d.isoYear, 4)
	case 'V':
		return digits(&d.isoWeek, 2)
	case 'u':
		return digits(&d.isoDay, 1)
	case 'b', 'B':
		return d.readMonth(s)
	case 'z':
		return d.readZone(s)
	case 'Z':
		return d.readMinutes(s)
	}
	rest, ok = strings.CutPrefix(s, "%")
	return rest, ok
}

func (d *civil) readMillis(s string) (rest string, ok bool) {
	n := 0
	for n < len(s) && n < 3 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n == 0 {
		return s, false
	}
	d.millis, _ = strconv.Atoi((s[:n] + "00")[:3])
	return s[n:], true
}

func (d *civil) readMonth(s string) (rest string, ok bool) {
	for m := time.January; m <= time.December; m++ {
		for _, name := range []string{m.String(), m.String()[:3]} {
			if len(s) >= len(name) && strings.EqualFold(s[:len(name)], name) {
				d.month = int(m)
				return s[len(name):], true
			}
		}
	}
	return s, false
}

// readMinutes reads %Z, which is minutes east of UTC.
func (d *civil) readMinutes(s string) (rest string, ok bool) {
	m := minutesSyntax().FindString(s)
	if m == "" {
		return s, false
	}
	n, _ := strconv.Atoi(m)
	d.hasOffset, d.offset = true, n*60
	return s[len(m):], true
}

// readZone reads %z: an offset, behind GMT or not, or the name of a zone. There may be spaces in front of it, and parentheses around it.
func (d *civil) readZone(s string) (rest string, ok bool) {
	z := strings.TrimLeft(s, " \t(")
	if strings.HasPrefix(z, "GMT+") || strings.HasPrefix(z, "GMT-") {
		z = z[len("GMT"):]
	}
	if rest, ok = d.readOffset(z); !ok {
		if rest, ok = d.readAbbreviation(z); !ok {
			return s, false
		}
	}
	return strings.TrimLeft(rest, ")"), true
}

func (d *civil) readOffset(s string) (rest string, ok bool) {
	m := offsetSyntax().FindString(s)
	switch m {
	case "":
		return s, false
	case "Z", "z":
		d.offset, d.zone = 0, "Z"
	default:
		digits := strings.ReplaceAll(m[1:], ":", "")
		if len(digits)%2 == 1 {
			digits = "0" + digits
		}
		d.offset, _ = parseOffset(m[:1] + digits)
	}
	d.hasOffset = true
	return s[len(m):], true
}

// readAbbreviation reads the name of a zone where its offset may stand as well.
func (d *civil) readAbbreviation(s string) (rest string, ok bool) {
	n := 0
	for n < len(s) && (s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z') {
		n++
	}
	seconds, ok := abbreviation(s[:n])
	if !ok {
		return s, false
	}
	d.hasOffset, d.offset, d.zone = true, seconds, strings.ToUpper(s[:n])
	return s[n:], true
}

var offsetSyntax = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[zZ]|[+-]\d{1,2}(?::?\d{2})?)`)
})

var minutesSyntax = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[+-]\d{1,4}`) })
