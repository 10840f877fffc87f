package expr

import (
	"math"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func dateMathOperators() []Operator {
	return []Operator{
		{Name: "$dateAdd", Since: "5.0", Doc: "A date moved forward by some units of time.", Shape: dateAddShape(1)},
		{Name: "$dateDiff", Since: "5.0", Doc: "How many boundaries of a unit of time lie between two dates.", Shape: named{
			params:    []param{{"startDate", 5166303}, {"endDate", 5166304}, {"unit", 5166305}, {"timezone", 0}, {"startOfWeek", 0}},
			notObject: 5166301, unknown: 5166302, eval: evalDateDiff, prepare: checkUnit(2),
		}},
		{Name: "$dateSubtract", Since: "5.0", Doc: "A date moved back by some units of time.", Shape: dateAddShape(-1)},
		{Name: "$dateTrunc", Since: "5.0", Doc: "A date cut off to a multiple of a unit of time.", Shape: named{
			params:    []param{{"date", 5439009}, {"unit", 5439010}, {"binSize", 0}, {"timezone", 0}, {"startOfWeek", 0}},
			notObject: 5439007, unknown: 5439008, eval: evalDateTrunc, prepare: prepareTrunc,
		}},
	}
}

// prepareTrunc leaves out a start of the week that is null where no week is cut off and all is constant; MongoDB's two ways to
// evaluate differ there.
func prepareTrunc(p *Parser, c *call) error {
	unit, constant := Constant(c.args[1])
	if _, date := Constant(c.args[0]); date && constant && c.args[4] != nil && unit.Type == bson.TypeString && unit.Str() != "week" {
		if v, ok := Constant(c.args[4]); ok && v.IsNullish() {
			c.args[4] = nil
		}
	}
	return checkUnit(1)(p, c)
}

// checkUnit refuses a bad unit that is constant when it is parsed.
func checkUnit(i int) func(p *Parser, c *call) error {
	return func(_ *Parser, c *call) error {
		if v, ok := Constant(c.args[i]); ok && !v.IsNullish() {
			_, err := unitOf(v, c.op.Name)
			return err
		}
		return nil
	}
}

func unitOf(v bson.Value, op string) (DateUnit, error) {
	if v.Type != bson.TypeString {
		return 0, mongoerr.New(5439013, "%s requires 'unit' to be a string, but got %s", op, v.Type)
	}
	u, ok := DateUnitNamed(v.Str())
	if !ok {
		return 0, mongoerr.New(mongoerr.FailedToParse, "%s parameter 'unit' value cannot be recognized as a time unit: %s", op, v.Str())
	}
	return u, nil
}

func dateAddShape(sign int64) named {
	return named{
		params:    []param{{"startDate", 5166402}, {"unit", 5166402}, {"amount", 5166402}, {"timezone", 0}},
		notObject: 5166400, unknown: 5166401, prepare: checkUnit(1),
		lacking: "%[1]s requires startDate, unit, and amount to be present",
		eval:    func(env *Env, c *call) (bson.Value, error) { return evalDateAdd(env, c, sign) },
	}
}

func evalDateAdd(env *Env, c *call, sign int64) (bson.Value, error) {
	args, mark, err := env.evalAll(c.args)
	if err != nil {
		return bson.Missing, err
	}
	defer env.cut(mark)
	for i, v := range args {
		if c.args[i] != nil && v.IsNullish() {
			return bson.Null, nil
		}
	}
	u, err := unitOf(args[1], c.op.Name)
	if err != nil {
		return args[1], err
	}
	ms, ok := dateOf(args[0])
	if !ok {
		return args[0], mongoerr.New(5166403, "%s requires startDate to be convertible to a date", c.op.Name)
	}
	n, exact := args[2].AsInt64()
	if !args[2].IsNumber() || !exact {
		return args[2], mongoerr.New(5166405, "%s expects integer amount of time units", c.op.Name)
	}
	zone, err := c.optionalZone(env, args[3], 3)
	if err != nil {
		return args[3], err
	}
	if sign < 0 && n == math.MinInt64 {
		return args[2], mongoerr.New(6045000, "invalid $dateSubtract 'amount' parameter value: %d", n)
	}
	n *= sign
	if limit := u.amountLimit(); n >= limit || n <= -limit {
		return args[2], mongoerr.New(5976500, "invalid dateAdd 'amount' parameter value: %d %s", n, u)
	}
	moved, ok := AddDate(ms, u, n, zone)
	if !ok {
		return args[2], mongoerr.New(5166406, "dateAdd overflowed")
	}
	return env.Date(moved), nil
}

// optionalZone is the zone of an argument that has been evaluated and is not null.
func (c *call) optionalZone(env *Env, v bson.Value, i int) (*time.Location, error) {
	if c.args[i] == nil {
		return nil, nil
	}
	return env.zoneOf(v)
}

// zoneParameter is optionalZone for operators whose messages say that the zone is a parameter.
func (c *call) zoneParameter(env *Env, v bson.Value, i int) (*time.Location, error) {
	z, err := c.optionalZone(env, v, i)
	if err != nil {
		err = mongoerr.Prefix(c.op.Name+" parameter 'timezone' value parsing failed :: caused by :: ", err)
	}
	return z, err
}

func evalDateDiff(env *Env, c *call) (bson.Value, error) {
	args, mark, err := env.evalAll(c.args)
	if err != nil {
		return bson.Missing, err
	}
	defer env.cut(mark)
	isWeek := args[2].Type == bson.TypeString && args[2].Str() == "week"
	for i, v := range args {
		if c.args[i] != nil && v.IsNullish() && (i != 4 || isWeek) {
			return bson.Null, nil
		}
	}
	var ms [2]int64
	for i := range ms {
		var ok bool
		if ms[i], ok = dateOf(args[i]); !ok {
			return args[i], mongoerr.New(5166307, "$dateDiff requires '%s' to be a date, but got %s", c.names[i], args[i].Type)
		}
	}
	u, err := unitOf(args[2], c.op.Name)
	if err != nil {
		return args[2], err
	}
	first := time.Sunday
	if c.args[4] != nil && u == Week {
		if first, err = weekdayNamed(args[4], c.op.Name); err != nil {
			return args[4], err
		}
	}
	zone, err := c.zoneParameter(env, args[3], 3)
	if err != nil {
		return args[3], err
	}
	if diff := ms[1] - ms[0]; u == Millisecond && (diff < ms[1]) != (ms[0] > 0) && ms[0] != 0 {
		return args[0], mongoerr.New(mongoerr.DurationOverflow, "dateDiff overflowed")
	}
	return env.Int64(DiffDates(ms[0], ms[1], u, zone, first)), nil
}

func evalDateTrunc(env *Env, c *call) (bson.Value, error) {
	args, mark, err := env.evalAll(c.args)
	if err != nil {
		return bson.Missing, err
	}
	defer env.cut(mark)
	for i, v := range args {
		if c.args[i] != nil && v.IsNullish() {
			return bson.Null, nil
		}
	}
	ms, ok := dateOf(args[0])
	if !ok {
		return args[0], mongoerr.New(5166307, "$dateTrunc requires 'date' to be a date, but got %s", args[0].Type)
	}
	u, err := unitOf(args[1], c.op.Name)
	if err != nil {
		return args[1], err
	}
	size := int64(1)
	if c.args[2] != nil {
		if size, err = binSize(args[2], u); err != nil {
			return args[2], err
		}
	}
	zone, err := c.zoneParameter(env, args[3], 3)
	if err != nil {
		return args[3], err
	}
	first := time.Sunday
	if c.args[4] != nil && u == Week {
		if first, err = weekdayNamed(args[4], c.op.Name); err != nil {
			return args[4], err
		}
	}
	cut, ok := TruncDate(ms, u, size, zone, first)
	if !ok {
		return args[0], mongoerr.New(mongoerr.DurationOverflow, "$dateTrunc overflowed")
	}
	return env.Date(cut), nil
}

// maxBinYears bounds what one bin may span, in years.
const maxBinYears = 100_000_000_000

func binSize(v bson.Value, u DateUnit) (int64, error) {
	n, exact := v.AsInt64()
	if !v.IsNumber() || !exact {
		return 0, mongoerr.New(5439017, "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '%s' of type %s", v.Computed(), v.Type)
	}
	if n <= 0 {
		return 0, mongoerr.New(5439018, "$dateTrunc requires 'binSize' to be greater than 0, but got value %d", n)
	}
	overflow := func(code mongoerr.Code) error {
		return mongoerr.New(code, "binSize in $dateTrunc is too large: %d %s", n, u)
	}
	switch {
	case u <= Hour && n > math.MaxInt64/u.Millis():
		return 0, overflow(5439002)
	case u > Hour && n > maxBinYears:
		return 0, overflow(5439006)
	}
	return n, nil
}
