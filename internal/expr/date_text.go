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
	const weekday = `(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?`
	const clock = `(?P<H>\d{1,2})[:.](?P<M>\d{2})(?:[:.](?P<S>\d{2})(?:[.,:](?P<L>\d{1,9}))?)?(?:\s*(?P<p>[ap])\.?m\.?)?`
	const zone = `(?:\s*(?P<z>z|utc|gmt|(?:gmt|utc)?[+-]\d{1,2}(?::?\d{2})?|[a-z]{3,4}|[a-z]+(?:/[a-z_]+)+))?`
	const after = `(?:(?:\s*t\s*|,?\s+)` + clock + zone + `)?`
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
		month + `,?\s+(?P<Y>\d{4})`,
		`@(?P<e>-?\d{1,12})`,
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
		d := noDate()
		for i, name := range syntax.SubexpNames() {
			if name == "" || m[i] == "" {
				continue
			}
			if name == "j" { // a day of the year counts from 1 here
				n, _ := strconv.Atoi(m[i])
				if n == 0 {
					return 0, errDateText(s, "out of range")
				}
				m[i] = strconv.Itoa(n - 1)
			}
			if name == "e" {
				n, _ := strconv.ParseInt(m[i], 10, 64)
				return n * 1000, nil
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

// abbreviations are zones that texts name, in hours east of UTC.
func abbreviation(name string) (hours int, ok bool) {
	switch strings.ToUpper(name) {
	case "Z", "UTC", "GMT", "WET":
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
	case "CEST", "EET":
		return 2, true
	case "MSK", "EEST":
		return 3, true
	case "JST":
		return 9, true
	}
	return 0, false
}

func (d *civil) setZone(s, text string) error {
	if hours, ok := abbreviation(text); ok {
		d.hasOffset, d.offset, d.zone = true, hours*3600, strings.ToUpper(text)
		return nil
	}
	if i := strings.IndexAny(text, "+-"); i >= 0 && !strings.Contains(text, "/") {
		d.readOffset(text[i:], 'z')
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
