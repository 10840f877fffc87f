package expr

import (
	"math"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func datePartsOperators() []Operator {
	return []Operator{
		{Name: "$dateFromParts", Since: "3.6", Doc: "The date that has the given parts.", Shape: special(parseDateFromParts)},
		{Name: "$dateToParts", Since: "3.6", Doc: "A document of a date's parts.", Shape: named{
			params:    []param{{"date", 40522}, {"timezone", 0}, {"iso8601", 0}},
			notObject: 40524, unknown: 40520, eval: evalDateToParts,
		}},
	}
}

func evalDateToParts(env *Env, c *call) (bson.Value, error) {
	date, err := c.args[0].Eval(env)
	if err != nil {
		return date, err
	}
	zone, null, err := c.zone(env, 1)
	if err != nil {
		return date, err
	}
	iso, err := c.arg(env, 2)
	if err != nil {
		return iso, err
	}
	if null || c.args[2] != nil && iso.IsNullish() {
		return bson.Null, nil
	}
	if c.args[2] != nil && iso.Type != bson.TypeBool {
		return iso, mongoerr.New(40521, "iso8601 must evaluate to a bool, found %s", iso.Type)
	}
	if date.IsNullish() {
		return bson.Null, nil
	}
	ms, err := momentOf(date)
	if err != nil {
		return date, err
	}
	t := inZone(ms, zone)
	keys := []string{"year", "month", "day", "hour", "minute", "second", "millisecond"}
	parts := []int{t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond() / 1e6}
	if c.args[2] != nil && iso.Bool() {
		year, week := t.ISOWeek()
		copy(keys, []string{"isoWeekYear", "isoWeek", "isoDayOfWeek"})
		parts[0], parts[1], parts[2] = year, week, isoWeekday(t)
	}
	vs := make([]bson.Value, len(parts))
	for i, n := range parts {
		vs[i] = env.Int(int64(n))
	}
	return env.Object(keys, vs)
}

// The arguments of $dateFromParts, as its call has them.
const (
	partYear = iota
	partMonth
	partDay
	partISOYear
	partISOWeek
	partISODay
	partHour
	partMinute
	partSecond
	partMillisecond
	partTimezone
	partArguments
)

func partNames() []string {
	return []string{"year", "month", "day", "isoWeekYear", "isoWeek", "isoDayOfWeek", "hour", "minute", "second", "millisecond", "timezone"}
}

func parseDateFromParts(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(40519, "$dateFromParts only supports an object as its argument")
	}
	c := &call{op: op, names: partNames(), args: make([]Expr, partArguments), eval: evalDateFromParts}
	for it := arg.Doc().Iter(); it.Next(); {
		i := slices.Index(c.names, it.Key())
		if i < 0 {
			return nil, mongoerr.New(40518, "Unrecognized argument to $dateFromParts: %s", it.Key())
		}
		e, err := p.parse(it.Value(), scope)
		if err != nil {
			return nil, err
		}
		c.args[i] = e
	}
	iso := c.args[partISOYear] != nil
	switch {
	case c.args[partYear] == nil && !iso:
		return nil, mongoerr.New(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present")
	case c.args[partYear] != nil && (iso || c.args[partISOWeek] != nil || c.args[partISODay] != nil):
		return nil, mongoerr.New(40489, "$dateFromParts does not allow mixing natural dates with ISO dates")
	case iso && (c.args[partMonth] != nil || c.args[partDay] != nil):
		return nil, mongoerr.New(40525, "$dateFromParts does not allow mixing ISO dates with natural dates")
	}
	return c, nil
}

// partOrder is the order in which the parts are computed and looked at: the first that is null makes the date null, and the first that is no good
// is the error.
func partOrder(iso bool) [7]int {
	if iso {
		return [...]int{partHour, partMinute, partSecond, partMillisecond, partISOYear, partISOWeek, partISODay}
	}
	return [...]int{partHour, partMinute, partSecond, partMillisecond, partYear, partMonth, partDay}
}

func evalDateFromParts(env *Env, c *call) (bson.Value, error) {
	var n [partTimezone]int64
	n[partMonth], n[partDay], n[partISOWeek], n[partISODay] = 1, 1, 1, 1
	var zone *time.Location
	iso := c.args[partISOYear] != nil
	for step, i := range partOrder(iso) {
		if step == 4 { // behind those of the day's time
			z, null, err := c.zone(env, partTimezone)
			if err != nil || null {
				return bson.Null, err
			}
			zone = z
		}
		if c.args[i] == nil {
			continue
		}
		v, err := c.arg(env, i)
		if err != nil {
			return v, err
		}
		if v.IsNullish() {
			return bson.Null, nil
		}
		if n[i], err = datePartNumber(c.names[i], v); err != nil {
			return v, err
		}
	}
	switch {
	case iso && (n[partISOYear] < 1 || n[partISOYear] > 9999):
		return bson.Missing, mongoerr.New(31095, "'isoWeekYear' must evaluate to an integer in the range 1 to 9999, found %d", n[partISOYear])
	case !iso && (n[partYear] < 1 || n[partYear] > 9999):
		return bson.Missing, mongoerr.New(40523, "'year' must evaluate to an integer in the range 1 to 9999, found %d", n[partYear])
	}
	return fromParts(env, n, iso, zone)
}

// fromParts is when clocks in the zone show the parts, all of them together: also where the seconds alone are so many that the day is another one.
func fromParts(env *Env, n [partTimezone]int64, iso bool, zone *time.Location) (bson.Value, error) {
	day := time.Date(int(n[partYear]), time.Month(n[partMonth]), int(n[partDay]), 0, 0, 0, 0, time.UTC)
	if iso {
		day = isoDate(int(n[partISOYear]), int(n[partISOWeek]), int(n[partISODay]))
	}
	if zone == nil {
		zone = time.UTC
	}
	// Of the milliseconds there may be as many as can be told in microseconds, as in MongoDB.
	shown := day.UnixMilli() + (n[partHour]*60+n[partMinute])*60_000
	shown, ok := addMillis(shown, n[partSecond], 1000)
	if ok = ok && n[partMillisecond] <= math.MaxInt64/1000 && n[partMillisecond] >= math.MinInt64/1000; ok {
		shown, ok = addMillis(shown, n[partMillisecond], 1)
	}
	t := whenLocal(time.UnixMilli(shown).UTC(), zone)
	if !ok || t.Unix() > math.MaxInt64/1000 || t.Unix() < math.MinInt64/1000 {
		return bson.Missing, mongoerr.New(mongoerr.DurationOverflow, "Overflow casting from a lower-precision duration to a higher-precision duration")
	}
	return env.Date(t.UnixMilli()), nil
}

// addMillis is ms + n * unit, and whether that fits.
func addMillis(ms, n, unit int64) (int64, bool) {
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, false
	}
	sum := ms + n*unit
	return sum, (sum > ms) == (n > 0) || n == 0
}

// datePartNumber is a whole number; all but years, seconds and milliseconds fit 16 bits.
func datePartNumber(name string, v bson.Value) (int64, error) {
	n, exact := v.AsInt64()
	if !v.IsNumber() || !exact {
		return 0, mongoerr.New(40515, "'%s' must evaluate to an integer, found %s with value %s", name, v.Type, v.Computed())
	}
	switch name {
	case "year", "isoWeekYear", "second", "millisecond":
		return n, nil
	}
	if n < math.MinInt16 || n > math.MaxInt16 {
		return 0, mongoerr.New(31034, "'%s' must evaluate to a value in the range [-32768, 32767]; value %d is not in range", name, n)
	}
	return n, nil
}
