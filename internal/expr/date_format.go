package expr

import (
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func dateTextOperators() []Operator {
	return []Operator{
		{Name: "$dateFromString", Since: "3.6", Doc: "The date that a string tells.", Shape: named{
			params:    []param{{"dateString", 40542}, {"format", 0}, {"timezone", 0}, {"onError", 0}, {"onNull", 0}},
			notObject: 40540, unknown: 40541, eval: evalDateFromString,
		}},
		{Name: "$dateToString", Since: "3.0", Doc: "A date as a string in a format.", Shape: named{
			params:    []param{{"date", 18628}, {"format", 0}, {"timezone", 0}, {"onNull", 0}},
			notObject: 18629, unknown: 18534, eval: evalDateToString, prepare: checkDateFormat,
		}},
	}
}

// checkDateFormat refuses a bad format that is constant when it is parsed.
func checkDateFormat(_ *Parser, c *call) error {
	if c.args[1] == nil {
		return nil
	}
	if v, ok := Constant(c.args[1]); ok && !v.IsNullish() {
		return checkFormat(v, "$dateToString", 18533, formatSpecifiers)
	}
	return nil
}

const (
	formatSpecifiers = "dGHjLmMSuUVwYzZ%bB"
	parseSpecifiers  = "dGHjLmMSuVYzZ%bB"
)

func checkFormat(v bson.Value, op string, code mongoerr.Code, specifiers string) error {
	if v.Type != bson.TypeString {
		return mongoerr.New(code, "%s requires that 'format' be a string, found: %s with value %s", op, v.Type, v.Computed())
	}
	for f := v.Str(); ; {
		i := strings.IndexByte(f, '%')
		if i < 0 {
			return nil
		}
		if i+1 == len(f) {
			return mongoerr.New(18535, "Unmatched '%s' at end of format string", "%")
		}
		if strings.IndexByte(specifiers, f[i+1]) < 0 {
			return mongoerr.New(18536, "Invalid format character '%%%c' in format string", f[i+1])
		}
		f = f[i+2:]
	}
}

func evalDateToString(env *Env, c *call) (bson.Value, error) {
	date, err := c.args[0].Eval(env)
	if err != nil {
		return date, err
	}
	format, err := c.arg(env, 1)
	if err != nil {
		return format, err
	}
	if c.args[1] != nil && format.IsNullish() {
		return bson.Null, nil
	}
	if c.args[1] != nil {
		if err := checkFormat(format, "$dateToString", 18533, formatSpecifiers); err != nil {
			return format, err
		}
	}
	zone, null, err := c.zone(env, 2)
	switch {
	case err != nil && !date.IsNullish():
		return date, err
	case date.IsNullish() && c.args[3] != nil:
		return c.args[3].Eval(env)
	case null || date.IsNullish():
		return bson.Null, nil
	}
	ms, err := momentOf(date)
	if err != nil {
		return date, err
	}
	layout := "%Y-%m-%dT%H:%M:%S.%LZ"
	if !isUTC(zone) {
		layout = "%Y-%m-%dT%H:%M:%S.%L"
	}
	if c.args[1] != nil {
		layout = format.Str()
	}
	s, err := formatDate(inZone(ms, zone), layout)
	if err != nil {
		return date, err
	}
	return env.Text(s)
}

// formatDate writes t by a format that has been checked.
func formatDate(t time.Time, format string) (string, error) {
	if y := t.Year(); y < 0 || y > 9999 {
		return "", mongoerr.New(18537, "$dateToString is only defined on year 0-9999, tried to use year %d", y)
	}
	b := make([]byte, 0, len(format)+24)
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b = append(b, format[i])
			continue
		}
		i++
		b = appendDatePart(b, t, format[i])
	}
	return string(b), nil
}

func appendDatePart(b []byte, t time.Time, specifier byte) []byte {
	isoYear, isoWeek := t.ISOWeek()
	_, offset := t.Zone()
	switch specifier {
	case 'd':
		return fmt.Appendf(b, "%02d", t.Day())
	case 'G':
		return fmt.Appendf(b, "%04d", isoYear)
	case 'H':
		return fmt.Appendf(b, "%02d", t.Hour())
	case 'j':
		return fmt.Appendf(b, "%03d", t.YearDay())
	case 'L':
		return fmt.Appendf(b, "%03d", t.Nanosecond()/1e6)
	case 'm':
		return fmt.Appendf(b, "%02d", int(t.Month()))
	case 'M':
		return fmt.Appendf(b, "%02d", t.Minute())
	case 'S':
		return fmt.Appendf(b, "%02d", t.Second())
	case 'u':
		return fmt.Appendf(b, "%d", isoWeekday(t))
	case 'U':
		return fmt.Appendf(b, "%02d", sundayWeek(t))
	case 'V':
		return fmt.Appendf(b, "%02d", isoWeek)
	case 'w':
		return fmt.Appendf(b, "%d", int(t.Weekday())+1)
	case 'Y':
		return fmt.Appendf(b, "%04d", t.Year())
	case 'z':
		return appendOffset(b, offset)
	case 'Z':
		return fmt.Appendf(b, "%d", offset/60)
	case 'b':
		return append(b, t.Month().String()[:3]...)
	case 'B':
		return append(b, t.Month().String()...)
	}
	return append(b, specifier)
}

// appendOffset writes seconds east of UTC as +hhmm.
func appendOffset(b []byte, seconds int) []byte {
	c := byte('+')
	if seconds < 0 {
		c, seconds = '-', -seconds
	}
	return fmt.Appendf(append(b, c), "%02d%02d", seconds/3600, seconds/60%60)
}
