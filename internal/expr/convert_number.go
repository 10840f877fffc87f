package expr

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// errOverflow names the value, but not a long: MongoDB's message ends with the colon then.
func errOverflow(v bson.Value) error {
	shown := v.Computed()
	if v.Type == bson.TypeInt64 {
		shown = ""
	}
	return errConversion("Conversion would overflow target type in $convert with no onError value: %s", shown)
}

func errParseNumber(s, why string) error {
	return errConversion("Failed to parse number '%s' in $convert with no onError value: %s", s, why)
}

// toInteger is an int or a long.
func toInteger(env *Env, v bson.Value, to target) (bson.Value, error) {
	n, err := integerOf(v, to)
	if err != nil {
		return v, err
	}
	if to.kind == bson.TypeInt64 {
		return env.Int64(n), nil
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		return v, errOverflow(v)
	}
	return env.Int32(int32(n)), nil
}

func integerOf(v bson.Value, to target) (int64, error) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := v.AsInt64()
		return n, nil
	case bson.TypeBool:
		return int64(boolInt(v.Bool())), nil
	case bson.TypeDouble, bson.TypeDecimal:
		return truncated(v)
	case bson.TypeDate:
		if to.kind == bson.TypeInt64 {
			return v.Millis(), nil
		}
	case bson.TypeString:
		return parseInteger(v.Str(), to)
	case bson.TypeBinary:
		return binaryInteger(v, to)
	}
	return 0, unsupported(v.Type, to.kind)
}

// truncated is a double or decimal without its fraction.
func truncated(v bson.Value) (int64, error) {
	if v.IsNaN() {
		return 0, errConversion("Attempt to convert NaN value to integer type in $convert with no onError value")
	}
	if v.Type == bson.TypeDecimal && v.Decimal().Inf() != 0 || math.IsInf(v.AsDouble(), 0) && v.Type == bson.TypeDouble {
		return 0, errConversion("Attempt to convert infinity value to integer type in $convert with no onError value")
	}
	if v.Type == bson.TypeDouble {
		if f := v.Double(); f >= math.MaxInt64 || f < math.MinInt64 {
			return 0, errOverflow(v)
		}
		return int64(v.Double()), nil
	}
	d := truncateDecimal(v.Decimal())
	n, exact := bson.Decimal(d).AsInt64()
	if !exact {
		return 0, errOverflow(v)
	}
	return n, nil
}

func parseInteger(s string, to target) (int64, error) {
	bits := 64
	if to.kind == bson.TypeInt32 {
		bits = 32
	}
	if err := refuseHexadecimal(s); err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, bits)
	switch {
	case s == "" || s == "+" || s == "-":
		return 0, errParseNumber(s, "No digits")
	case errors.Is(err, strconv.ErrRange):
		return 0, errParseNumber(s, "Overflow")
	case err != nil:
		return 0, errParseNumber(s, "Did not consume whole string.")
	}
	return n, nil
}

// refuseHexadecimal refuses what begins with 0x, and nothing else: a sign or a capital X lets it pass, for who reads the number to judge.
func refuseHexadecimal(s string) error {
	if strings.HasPrefix(s, "0x") {
		return errConversion("Illegal hexadecimal input in $convert with no onError value: %s", s)
	}
	return nil
}

// binaryInteger reads the bytes of an integer: one, two or four, and eight for a long.
func binaryInteger(v bson.Value, to target) (int64, error) {
	data := v.Data[5:] // of the old subtype 2, with its second length
	order := byteOrder(to)
	switch {
	case len(data) == 1:
		return int64(int8(data[0])), nil
	case len(data) == 2:
		return int64(int16(order.Uint16(data))), nil
	case len(data) == 4:
		return int64(int32(order.Uint32(data))), nil
	case len(data) == 8 && to.kind == bson.TypeInt64:
		return int64(order.Uint64(data)), nil
	}
	return 0, errConversion("Failed to convert '%s' to %s in $convert because of invalid length: %d", v, to.kind, len(data))
}

func byteOrder(to target) binary.ByteOrder {
	if to.bigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// greatestSubnormal is the greatest decimal that has fewer digits than others as a double.
const greatestSubnormal = "2.225073858507201259573821257020768E-308"

// underflows says that d is a number but has no normal double.
func underflows(d bson.Decimal128) bool {
	if d.IsNaN() || d.Inf() != 0 {
		return false
	}
	x := d.APD()
	x.Negative = false
	return !x.IsZero() && x.Cmp(decimalConstant(greatestSubnormal)) <= 0
}

func toDouble(env *Env, v bson.Value, to target) (bson.Value, error) {
	switch v.Type {
	case bson.TypeDouble:
		return v, nil
	case bson.TypeInt32, bson.TypeInt64:
		return env.Double(v.AsDouble()), nil
	case bson.TypeDecimal:
		d := v.Decimal()
		f := d.Float64()
		if math.IsInf(f, 0) && d.Inf() == 0 || underflows(d) {
			return v, errOverflow(v)
		}
		return env.Double(f), nil
	case bson.TypeBool:
		return env.Double(float64(boolInt(v.Bool()))), nil
	case bson.TypeDate:
		return env.Double(float64(v.Millis())), nil
	case bson.TypeString:
		f, err := parseDouble(v.Str())
		return env.Double(f), err
	case bson.TypeBinary:
		data := v.Data[5:] // of the old subtype 2, with its second length
		switch len(data) {
		case 4:
			return env.Double(float64(math.Float32frombits(byteOrder(to).Uint32(data)))), nil
		case 8:
			return env.Double(math.Float64frombits(byteOrder(to).Uint64(data))), nil
		}
		return v, errConversion("Failed to convert '%s' to double in $convert because of invalid length: %d", v, len(data))
	}
	return v, unsupported(v.Type, to.kind)
}

func parseDouble(s string) (float64, error) {
	if err := refuseHexadecimal(s); err != nil {
		return 0, err
	}
	switch {
	case s == "":
		return 0, errParseNumber(s, "Empty string")
	case strings.IndexByte(" \t\n\v\f\r", s[0]) >= 0:
		return 0, errParseNumber(s, "Leading whitespace")
	case !beginsNumber(s):
		return 0, errParseNumber(s, "Did not consume any digits")
	case strings.Contains(s, "_"):
		return 0, errParseNumber(s, "Did not consume whole string.")
	}
	text := s
	if strings.ContainsAny(s, "xX") && !strings.ContainsAny(s, "pP") {
		text += "p0"
	}
	f, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	if errors.Is(err, strconv.ErrRange) || f == 0 && err == nil && !strings.ContainsAny(s, "xX") && strings.ContainsAny(mantissa, "123456789") {
		return 0, errParseNumber(s, "Out of range")
	}
	if err != nil {
		return 0, errParseNumber(s, "Did not consume whole string.")
	}
	return f, nil
}

// beginsNumber says whether a double can be read from the beginning of s.
func beginsNumber(s string) bool {
	if s[0] == '+' || s[0] == '-' {
		s = s[1:]
	}
	lower := strings.ToLower(s[:min(len(s), len("inf"))])
	if lower == "inf" || lower == "nan" {
		return true
	}
	s = strings.TrimPrefix(s, ".")
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

func toDecimal(env *Env, v bson.Value) (bson.Value, error) {
	switch v.Type {
	case bson.TypeDecimal:
		return v, nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		return env.Decimal(v.AsDecimal()), nil
	case bson.TypeBool:
		return env.Decimal(bson.DecimalFromInt64(int64(boolInt(v.Bool())))), nil
	case bson.TypeDate:
		return env.Decimal(bson.DecimalFromInt64(v.Millis())), nil
	case bson.TypeString:
		d, err := parseDecimal(v.Str())
		return env.Decimal(d), err
	}
	return v, unsupported(v.Type, bson.TypeDecimal)
}
