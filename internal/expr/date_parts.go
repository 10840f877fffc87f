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

func evalDateFromParts(env *Env, c *call) (bson.Value, error) {
	var n [partTimezone]int64
	for i := range n {
		if i == partMonth || i == partDay || i == partISOWeek || i == partISODay {
			n[i] = 1
		}
		v, err := c.arg(env, i)
		if err != nil {
			return v, err
		}
		if c.args[i] == nil {
			continue
		}
		if v.IsNullish() {
			return bson.Null, nil
		}
		if n[i], err = datePartNumber(c.names[i], v, i < partSecond); err != nil {
			return v, err
		}
		if (i == partYear || i == partISOYear) && (n[i] < 1 || n[i] > 9999) {
			return v, mongoerr.New(40523, "'%s' must evaluate to an integer in the range 1 to 9999, found %d", c.names[i], n[i])
		}
	}
	zone, null, err := c.zone(env, partTimezone)
	if err != nil || null {
		return bson.Null, err
	}
	return fromParts(env, n, c.args[partISOYear] != nil, zone)
}

func fromParts(env *Env, n [partTimezone]int64, iso bool, zone *time.Location) (bson.Value, error) {
	day := time.Date(int(n[partYear]), time.Month(n[partMonth]), int(n[partDay]), 0, 0, 0, 0, time.UTC)
	if iso {
		day = isoDate(int(n[partISOYear]), int(n[partISOWeek]), int(n[partISODay]))
	}
	if zone == nil {
		zone = time.UTC
	}
	t := whenLocal(time.Date(day.Year(), day.Month(), day.Day(), int(n[partHour]), int(n[partMinute]), 0, 0, time.UTC), zone)
	ms, ok := addMillis(t.UnixMilli(), n[partSecond], 1000)
	if ok {
		ms, ok = addMillis(ms, n[partMillisecond], 1)
	}
	if !ok {
		return bson.Missing, mongoerr.New(mongoerr.DurationOverflow, "Overflow while computing the date in $dateFromParts")
	}
	return env.Date(ms), nil
}

// addMillis is ms + n * unit, and whether that fits.
func addMillis(ms, n, unit int64) (int64, bool) {
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, false
	}
	sum := ms + n*unit
	return sum, (sum > ms) == (n > 0) || n == 0
}

// datePartNumber is a whole number; small ones fit 16 bits.
func datePartNumber(name string, v bson.Value, small bool) (int64, error) {
	n, exact := v.AsInt64()
	if !v.IsNumber() || !exact {
		return 0, mongoerr.New(40515, "'%s' must evaluate to an integer, found %s with value %s", name, v.Type, v)
	}
	if small && (n < math.MinInt16 || n > math.MaxInt16) {
		return 0, mongoerr.New(31034, "'%s' must evaluate to a value in the range [-32768, 32767]; value %d is not in range", name, n)
	}
	return n, nil
}
