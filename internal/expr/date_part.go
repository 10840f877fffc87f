package expr

import (
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func datePartOperators() []Operator {
	part := func(f func(t time.Time) int) special {
		return datePart(func(env *Env, t time.Time) bson.Value { return env.Int(int64(f(t))) })
	}
	return []Operator{
		{Name: "$dayOfMonth", Since: "2.2", Doc: "The day of a date's month, from 1 to 31.", Shape: part(time.Time.Day)},
		{Name: "$dayOfWeek", Since: "2.2", Doc: "The day of a date's week, from 1 for Sunday to 7.", Shape: part(func(t time.Time) int { return int(t.Weekday()) + 1 })},
		{Name: "$dayOfYear", Since: "2.2", Doc: "The day of a date's year, from 1 to 366.", Shape: part(time.Time.YearDay)},
		{Name: "$hour", Since: "2.2", Doc: "The hour of a date, from 0 to 23.", Shape: part(time.Time.Hour)},
		{Name: "$isoDayOfWeek", Since: "3.4", Doc: "The day of a date's week, from 1 for Monday to 7.", Shape: part(isoWeekday)},
		{Name: "$isoWeek", Since: "3.4", Doc: "The ISO 8601 week of a date, from 1 to 53.", Shape: part(func(t time.Time) int { _, w := t.ISOWeek(); return w })},
		{Name: "$isoWeekYear", Since: "3.4", Doc: "The year that a date's ISO 8601 week belongs to.", Shape: datePart(func(env *Env, t time.Time) bson.Value {
			year, _ := t.ISOWeek()
			return env.Int64(int64(year))
		})},
		{Name: "$millisecond", Since: "2.4", Doc: "The milliseconds of a date, from 0 to 999.", Shape: part(func(t time.Time) int { return t.Nanosecond() / 1e6 })},
		{Name: "$minute", Since: "2.2", Doc: "The minute of a date, from 0 to 59.", Shape: part(time.Time.Minute)},
		{Name: "$month", Since: "2.2", Doc: "The month of a date, from 1 to 12.", Shape: part(func(t time.Time) int { return int(t.Month()) })},
		{Name: "$second", Since: "2.2", Doc: "The second of a date, from 0 to 59.", Shape: part(time.Time.Second)},
		{Name: "$week", Since: "2.2", Doc: "The week of a date's year, from 0 to 53; weeks start on Sunday.", Shape: part(sundayWeek)},
		{Name: "$year", Since: "2.2", Doc: "The year of a date.", Shape: part(time.Time.Year)},
	}
}

func isoWeekday(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

// sundayWeek counts weeks from the year's first Sunday on.
func sundayWeek(t time.Time) int { return (t.YearDay() - 1 + 7 - int(t.Weekday())) / 7 }

// datePart takes a date, or {date, timezone}.
func datePart(f func(env *Env, t time.Time) bson.Value) special {
	return func(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
		c, err := p.parseDatePart(op, arg, scope)
		if err != nil {
			return nil, err
		}
		c.eval = func(env *Env, c *call) (bson.Value, error) {
			date, err := c.args[0].Eval(env)
			if err != nil {
				return date, err
			}
			zone, null, err := c.zone(env, 1)
			if err != nil || null || date.IsNullish() {
				if date.IsNullish() {
					err = nil
				}
				return bson.Null, err
			}
			ms, err := momentOf(date)
			if err != nil {
				return date, err
			}
			return f(env, inZone(ms, zone)), nil
		}
		return c, nil
	}
}

func (p *Parser) parseDatePart(op *Operator, arg bson.Value, scope *Scope) (*call, error) {
	c := &call{op: op, names: []string{"date", "timezone"}, args: make([]Expr, 2)}
	var err error
	switch {
	case arg.Type == bson.TypeObject && !isOperatorObject(arg.Doc()):
		for it := arg.Doc().Iter(); it.Next() && err == nil; {
			switch it.Key() {
			case "date":
				c.args[0], err = p.parse(it.Value(), scope)
			case "timezone":
				c.args[1], err = p.parse(it.Value(), scope)
			default:
				return nil, mongoerr.New(40535, "unrecognized option to %s: \"%s\"", op.Name, it.Key())
			}
		}
		if err == nil && c.args[0] == nil {
			return nil, mongoerr.New(40539, "missing 'date' argument to %s, provided: %s: %s", op.Name, op.Name, arg)
		}
	case arg.Type == bson.TypeArray:
		if n := arg.Doc().Count(); n != 1 {
			return nil, mongoerr.New(40536, "%s accepts exactly one argument if given an array, but was given %d", op.Name, n)
		}
		c.args[0], err = p.parse(arg.Doc().Index(0), scope)
	default:
		c.args[0], err = p.parse(arg, scope)
	}
	return c, err
}

// zone evaluates a time zone argument: null when it is null, UTC when it was not given.
func (c *call) zone(env *Env, i int) (z *time.Location, null bool, err error) {
	if c.args[i] == nil {
		return nil, false, nil
	}
	v, err := c.args[i].Eval(env)
	if err != nil {
		return nil, false, err
	}
	if v.IsNullish() {
		return nil, true, nil
	}
	z, err = env.zoneOf(v)
	return z, false, err
}
