package expr

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// errStringTooLong is what every string over the limit gives, wherever it is made.
func errStringTooLong() error {
	return mongoerr.New(16493, "Tried to create string longer than 16MB")
}

// Text is a string, unless it is too long.
func (e *Env) Text(s string) (bson.Value, error) {
	if len(s) >= MaxStringBytes {
		return bson.Missing, errStringTooLong()
	}
	return e.String(s), nil
}

// coerceText is v as the older string operators read it: null is the empty text, and numbers, dates, timestamps and code
// have one, too.
func coerceText(v bson.Value) (string, error) {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeCode:
		return v.Str(), nil
	case bson.TypeNull, bson.TypeMissing, bson.TypeUndefined:
		return "", nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal:
		return numberText(v), nil
	case bson.TypeDouble: // six digits, as a C++ stream writes it
		if f := v.Double(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return fmt.Sprintf("%.6g", f), nil
		}
		return strings.TrimPrefix(strings.ToLower(fmt.Sprint(v.Double())), "+"), nil
	case bson.TypeDate:
		return isoText(v.Millis())
	case bson.TypeTimestamp:
		t, i := v.Timestamp()
		return time.Unix(int64(t), 0).UTC().Format("Jan _2 15:04:05:") + strconv.FormatUint(uint64(i), 10), nil
	}
	return "", mongoerr.New(16007, "can't convert from BSON type %s to String", v.Type)
}

// numberText is a number as $toString writes it.
func numberText(v bson.Value) string {
	switch v.Type {
	case bson.TypeInt32:
		return strconv.Itoa(int(v.Int32()))
	case bson.TypeInt64:
		return strconv.FormatInt(v.Int64(), 10)
	case bson.TypeDecimal:
		return v.Decimal().String()
	}
	return doubleText(v.Double())
}

// inMessage is a number as messages about mathematics show it: as the double, or decimal, that is computed with.
func inMessage(v bson.Value) string {
	if v.Type != bson.TypeDecimal {
		v = bson.Double(v.AsDouble())
	}
	return v.Computed()
}

// doubleText is the shortest text that reads back as f.
func doubleText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// Dates outside of these cannot be written.
const (
	minDateText = -62167219200000 // year 0
	maxDateText = 253402300799999 // year 9999
)

// isoText is a date as 2018-03-27T16:58:51.538Z.
func isoText(ms int64) (string, error) {
	if ms < minDateText || ms > maxDateText {
		return "", mongoerr.New(18537, "Could not convert date to string: date component was outside the supported range of 0-9999: %d", ms)
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"), nil
}
