package command

import (
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// primaryMode is the mode of $readPreference that has the primary answer.
const primaryMode = "primary"

// minStaleness is how many seconds a client may at least let a secondary be behind.
const minStaleness = 90

// checkPreference refuses a $readPreference that is none, and what only secondaries can be chosen by, where the primary is asked for.
func (a *Args) checkPreference(v bson.Value) error {
	if v.IsNullish() {
		return nil
	}
	if v.Type != bson.TypeObject {
		return a.wrongType("$readPreference", v.Type, []bson.Type{bson.TypeObject})
	}
	if v.Doc().Count() == 1 && isPreferenceMode(v.Doc().Lookup("mode")) {
		return nil // as a rule
	}
	p := NewArgs("readPreference", v.Doc())
	mode, _ := p.enum("mode", preferenceModes...)
	p.Required("mode")
	tags, hedge := p.Array("tags"), p.Doc("hedge")
	p.checkStaleness()
	if targeted := p.Bool("$_isPretargeted", true); !targeted {
		p.Fail(mongoerr.New(mongoerr.InvalidOptions, "$_isPretargeted field must be true if provided; found false"))
	}
	hedges := false
	if hedge != nil {
		h := NewArgs("readPreference.hedge", hedge)
		hedges = h.Bool("enabled", true)
		p.Fail(h.Done())
	}
	if err := p.Err(); err != nil || mode != primaryMode { // fields that nobody knows are passed over, as they were before MongoDB 8: clients have some of their own
		return err
	}
	n, first := tags.Count(), tags.Index(0)
	switch {
	case hedges:
		return mongoerr.New(mongoerr.InvalidOptions, "cannot enable hedging for $readPreference mode \"primaryOnly\"")
	case n > 1 || n == 1 && (first.Type != bson.TypeObject || !first.Doc().IsEmpty()):
		return mongoerr.New(mongoerr.BadValue, "Only empty tags are allowed with primary read preference")
	case p.exactOr("maxStalenessSeconds", 0) != 0:
		return mongoerr.New(mongoerr.BadValue, "maxStalenessSeconds can not be set for the primary mode")
	}
	return nil
}

// checkStaleness refuses a maxStalenessSeconds that is none.
func (a *Args) checkStaleness() {
	switch n := a.exactOr("maxStalenessSeconds", 0); {
	case n < 0:
		a.Fail(mongoerr.New(mongoerr.BadValue, "maxStalenessSeconds must be a non-negative integer"))
	case n == math.MaxInt64:
		a.Fail(mongoerr.New(mongoerr.BadValue, "maxStalenessSeconds value can not exceed %d", int64(math.MaxInt64)))
	case n > 0 && n < minStaleness:
		a.Fail(mongoerr.New(mongoerr.MaxStalenessOutOfRange, "maxStalenessSeconds value can not be less than %d", minStaleness))
	}
}

var preferenceModes = []string{primaryMode, "primaryPreferred", "secondary", "secondaryPreferred", "nearest"}

func isPreferenceMode(v bson.Value) bool {
	return v.Type == bson.TypeString && slices.Contains(preferenceModes, v.Str())
}

// readsSecondaries says whether $readPreference lets a secondary answer.
func readsSecondaries(v bson.Value) bool {
	if v.Type != bson.TypeObject {
		return false
	}
	mode := v.Doc().Lookup("mode")
	return mode.Type == bson.TypeString && mode.Str() != primaryMode
}
