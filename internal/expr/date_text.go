package expr

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The texts that are understood without a format: ISO 8601, and words and numbers in the orders that people write.
var dateSyntax = sync.OnceValue(func() []*regexp.Regexp {
	var out []*regexp.Regexp
	const month = `(?P<b>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?`
	const weekday = `(?:(?P<w>mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|ur)?(?:day)?\.?,?\s+)?`
	const clock = `(?P<H>\d{1,2})(?:[:.](?P<M>\d{2})(?:[:.](?P<S>\d{2})(?:[.,:](?P<L>\d{1,9}))?)?)?(?:\s*(?P<p>[ap])\.?m\.?)?`
	const zone = `(?:\s*(?P<z>(?:gmt|utc)?[+-]\d{1,2}(?::?\d{2})?|[a-z]{1,4}|[a-z]+(?:/[a-z_]+)+))?`
	const after = `(?:(?:\s*(?P<t>t)\s*|,?\s+)` + clock + `)?` + zone
	for _, s := range []string{
		`(?P<Y>-?\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})` + after,
		`(?P<Y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})` + after,
		`(?P<Y>\d{4})(?P<m>\d{2})(?P<d>\d{2})(?:t?(?P<H>\d{2}):?(?P<M>\d{2})(?::?(?P<S>\d{2})(?:[.,](?P<L>\d{1,9}))?)?` + zone + `)?`,
		`(?P<G>\d{4})-?w(?P<V>\d{2})(?:-?(?P<u>\d))?` + after,
		`(?P<Y>\d{4})[.-]?(?P<j>\d{3})` + after,
		`(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<Y>\d{4})` + after,
		`(?P<d>\d{1,2})[.-](?P<m>\d{1,2})[.-](?P<Y>\d{4})` + after,
		`(?P<Y>\d{4})-(?P<m>\d{2})`,
		weekday + month + `\s+(?P<d>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<Y>\d{4})` + after,
		weekday + `(?P<d>\d{1,2})(?:st|nd|rd|th)?[\s-]+` + month + `,?[\s-]+(?P<Y>\d{4})` + after,
		weekday + `(?P<Y>\d{4})[\s-]+` + month + `[\s-]+(?P<d>\d{1,2})` + after,
		weekday + month + `\s+(?P<d>\d{1,2})\s+` + clock + zone + `\s+(?P<Y>\d{4})`,
		month + `\s+(?P<Y>\d{4})`,
		`(?P<Y>\d{4})\s+` + month,
		clock + zone + `\s+(?P<Y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})`,
		`@(?P<e>-?\d{1,12})(?:\.(?P<f>\d{1,9}))?`,
	} {
		out = append(out, regexp.MustCompile(`(?i)^[\s\x00\x{a0}]*`+s+`[\s\x00\x{a0}]*$`))
	}
	return out
})

const maxDateTextLength = 200

// parseDateText reads a date in one of the usual notations.
func parseDateText(s string, zone *time.Location) (int64, error) {
	if len(s) > maxDateTextLength {
		return 0, errDateText(s[:maxDateTextLength]+"…", "too long")
	}
	for _, syntax := range dateSyntax() {
		m := syntax.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		d, named := noDate(), func(name string) string {
			if i := syntax.SubexpIndex(name); i >= 0 {
				return m[i]
			}
			return ""
		}
		if e := named("e"); e != "" {
			return parseEpoch(e, named("f")), nil
		}
		if half := named("p") != ""; half && (named("t") != "" || named("L") != "") || !half && named("t") == "" && named("H") != "" && named("M") == "" {
			return 0, errDateText(s, "unexpected character")
		}
		for i, name := range syntax.SubexpNames() {
			if name == "" || m[i] == "" {
				continue
			}
			if name == "j" { // a day of the year counts from 1 here
				n, _ := strconv.Atoi(m[i])
				if n == 0 || n > 366 {
					return 0, errDateText(s, "out of range")
				}
				m[i] = strconv.Itoa(n - 1)
			}
			if err := d.setNamed(s, name, m[i]); err != nil {
				return 0, err
			}
		}
		if z, ok := d.namedZone(m, syntax); ok {
			zone = z
		}
		if d.month >= 0 && d.day < 0 {
			d.day = 1 // a month alone begins with its first
		}
		return d.moment(s, zone)
	}
	return 0, errDateText(s, "unexpected character")
}

// parseEpoch is a number of seconds since 1970 with a fraction.
func parseEpoch(seconds, fraction string) int64 {
	n, _ := strconv.ParseInt(seconds, 10, 64)
	ms, _ := strconv.ParseInt((fraction + "000")[:3], 10, 64)
	if seconds[0] == '-' {
		ms = -ms
	}
	return n*1000 + ms
}

// weekdayOf is the day of the week, from 0 for Sunday, whose name begins with these three letters.
func weekdayOf(name string) int {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.EqualFold(day.String()[:3], name) {
			return int(day)
		}
	}
	return -1
}

func (d *civil) setNamed(s, name, text string) error {
	n, _ := strconv.Atoi(text)
	switch name {
	case "Y":
		d.year = n
	case "m":
		d.month = n
	case "d":
		d.day = n
	case "H":
		d.hour = n
	case "M":
		d.minute = n
	case "S":
		d.second = n
	case "L":
		d.millis, _ = strconv.Atoi((text + "00")[:3])
	case "G":
		d.isoYear = n
	case "V":
		d.isoWeek = n
	case "u":
		d.isoDay = n
	case "j":
		d.day366 = n
	case "b":
		d.readMonth(text)
	case "w":
		d.weekday = weekdayOf(text)
	case "p":
		if d.hour < 1 || d.hour > 12 {
			return errDateText(s, "a meridian needs an hour from 1 to 12")
		}
		d.hour = d.hour%12 + 12*boolInt(strings.EqualFold(text, "p"))
	case "z":
		return d.setZone(s, text)
	}
	return nil
}

// abbreviation is a zone that texts name, in seconds east of UTC: one of those in use, or a letter, of which there is no J.
func abbreviation(name string) (seconds int, ok bool) {
	name = strings.ToUpper(name)
	if len(name) == 1 {
		hours, ok := letterZone(name[0])
		return hours * 3600, ok
	}
	if name == "NDT" {
		return -(2*3600 + 30*60 + 52), true
	}
	hours, ok := zoneHours(name)
	return hours * 3600, ok
}

// letterZone is a zone of one letter: eastwards from A to M, westwards from N to Y.
func letterZone(c byte) (hours int, ok bool) {
	switch {
	case c == 'Z':
		return 0, true
	case c >= 'A' && c <= 'I':
		return int(c-'A') + 1, true
	case c >= 'K' && c <= 'M':
		return int(c-'K') + 10, true
	case c >= 'N' && c <= 'Y':
		return -int(c-'N') - 1, true
	}
	return 0, false
}

func zoneHours(name string) (hours int, ok bool) {
	switch name {
	case "UTC", "GMT", "WET":
		return 0, true
	case "EST", "CDT":
		return -5, true
	case "EDT", "AST":
		return -4, true
	case "CST", "MDT":
		return -6, true
	case "MST", "PDT":
		return -7, true
	case "PST":
		return -8, true
	case "CET", "BST", "WEST":
		return 1, true
	case "CEST", "EET", "IST":
		return 2, true
	case "MSK", "EEST":
		return 3, true
	case "JST":
		return 9, true
	}
	return 0, false
}

func (d *civil) setZone(s, text string) error {
	if seconds, ok := abbreviation(text); ok {
		d.hasOffset, d.offset, d.zone = true, seconds, strings.ToUpper(text)
		return nil
	}
	if i := strings.IndexAny(text, "+-"); i >= 0 && !strings.Contains(text, "/") {
		d.readOffset(text[i:])
		return nil
	}
	if strings.Contains(text, "/") {
		return nil // by name, see namedZone
	}
	return errDateText(s, "unknown time zone '"+text+"'")
}

// namedZone is the zone that the text names in full.
func (d *civil) namedZone(m []string, syntax *regexp.Regexp) (*time.Location, bool) {
	i := syntax.SubexpIndex("z")
	if i < 0 || !strings.Contains(m[i], "/") {
		return nil, false
	}
	z, err := loadZone(m[i])
	return z, err == nil
}
