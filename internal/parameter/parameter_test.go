package parameter

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func TestSet(t *testing.T) {
	changed := ""
	r := NewRegistry(func(name string) { changed += name + " " })
	NewBool(r, "flag", Both, false)
	NewInt(r, "number", Both, 5, 0, 10, false)
	NewInt(r, "long", Runtime, 5, 0, 1<<40, true)
	NewString(r, "text", Both, "a", 3)
	NewFixed(r, "fixed", bson.Int32(1))
	NewDouble(r, "share", Both, 0.5, 0, 1)
	NewInt(r, "early", Startup, 1, 0, 9, false)
	r.Alias("older", "number")
	const ok = mongoerr.Code(0)
	for _, c := range []struct {
		name  string
		when  When
		value string
		code  mongoerr.Code
		now   string
	}{
		{"flag", Runtime, "true", ok, "true"},
		{"flag", Runtime, "0", ok, "false"},
		{"flag", Runtime, "'false'", ok, "true"}, // a text is a yes, whatever it says
		{"flag", Runtime, "null", ok, "false"},
		{"flag", Runtime, "[]", ok, "true"},
		{"flag", Startup, "'off'", ok, "false"},
		{"flag", Startup, "'perhaps'", mongoerr.BadValue, "false"},
		{"number", Runtime, "7.9", ok, "7"},
		{"number", Runtime, "true", ok, "1"},
		{"number", Runtime, "'3'", mongoerr.BadValue, "1"},
		{"number", Runtime, "NaN", mongoerr.BadValue, "1"},
		{"number", Runtime, "-1", mongoerr.BadValue, "1"},
		{"number", Runtime, "11", mongoerr.BadValue, "1"},
		{"number", Startup, "'3'", ok, "3"},
		{"number", Startup, "'x'", mongoerr.BadValue, "3"},
		{"number", Startup, "'11'", mongoerr.BadValue, "3"},
		{"older", Runtime, "4", ok, "4"},
		{"number", Runtime, "4.5", ok, "4"},
		{"older", Startup, "'x'", mongoerr.BadValue, "4"},
		{"number", Runtime, "3", ok, "3"},
		{"older", Runtime, "11", mongoerr.BadValue, "3"},
		{"long", Runtime, "6", ok, "NumberLong(6)"},
		{"long", Startup, "'6'", mongoerr.BadValue, "NumberLong(6)"},
		{"text", Runtime, "'bcd'", ok, `"bcd"`},
		{"text", Runtime, "'bcde'", mongoerr.Overflow, `"bcd"`},
		{"text", Runtime, "1", mongoerr.TypeMismatch, `"bcd"`},
		{"text", Startup, "'x'", ok, `"x"`},
		{"share", Runtime, "0.25", ok, "0.25"},
		{"share", Runtime, "NumberInt(1)", ok, "1.0"},
		{"share", Runtime, "NumberDecimal('0.1')", ok, "0.1"},
		{"share", Runtime, "1.5", mongoerr.BadValue, "0.1"},
		{"share", Runtime, "-0.1", mongoerr.BadValue, "0.1"},
		{"share", Runtime, "NaN", mongoerr.BadValue, "0.1"},
		{"share", Runtime, "Infinity", mongoerr.BadValue, "0.1"},
		{"share", Runtime, "'0.2'", mongoerr.BadValue, "0.1"},
		{"share", Runtime, "true", mongoerr.BadValue, "0.1"},
		{"share", Startup, "'0.2'", ok, "0.2"},
		{"share", Startup, "'NaN'", mongoerr.BadValue, "0.2"},
		{"share", Startup, "'half'", mongoerr.BadValue, "0.2"},
		{"share", Startup, "'2'", mongoerr.BadValue, "0.2"},
		{"fixed", Runtime, "2", mongoerr.IllegalOperation, "1"},
		{"fixed", Startup, "2", mongoerr.BadValue, "1"},
		{"early", Runtime, "2", mongoerr.IllegalOperation, "1"},
		{"early", Startup, "'2'", ok, "2"},
	} {
		changed = ""
		was := r.Lookup(c.name).Get()
		got, err := r.Set(c.name, bson.MustParse(c.value), c.when)
		code := ok
		if err != nil {
			code = mongoerr.From(err).Code
		}
		now := r.Lookup(c.name).Get()
		told := c.name
		if told == "older" {
			told = "number"
		}
		if code != c.code || now.Text() != c.now {
			t.Errorf("%s = %s: %v, now %s", c.name, c.value, err, now.Text())
		}
		if err == nil && (!bson.Identical(was, got) || changed != told+" ") || err != nil && changed != "" {
			t.Errorf("%s = %s: was %s, told %q", c.name, c.value, got.Text(), changed)
		}
	}
	if _, err := r.Set("none", bson.True, Runtime); !mongoerr.Is(err, mongoerr.InvalidOptions) {
		t.Error(err)
	}
	if all := r.All(); len(all) != 8 || all[0].Name != "early" {
		t.Errorf("%d parameters", len(all))
	}
}
