package expr

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func truncateDecimal(d bson.Decimal128) bson.Decimal128 { return wholeOf(d, apd.RoundDown) }

var decimalSyntax = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[+-]?(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d+))?$`)
})

// parseDecimal reads a decimal of at most 34 digits; more than that, or out of range, is an error.
func parseDecimal(s string) (bson.Decimal128, error) {
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "nan":
		d := bson.DecimalNaN
		if s[0] == '-' {
			d.High |= 1 << 63
		}
		return d, nil
	case "inf", "infinity":
		return bson.DecimalInf(s[0] == '-'), nil
	}
	if s == "" {
		return bson.Decimal128{}, errParseNumber(s, "Empty string")
	}
	m := decimalSyntax().FindStringSubmatch(s)
	if m == nil {
		return bson.Decimal128{}, errParseNumber(s, "Failed to parse string to decimal")
	}
	x, _, err := apd.NewFromString(s)
	if err != nil || x.Form != apd.Finite {
		return bson.Decimal128{}, errParseNumber(s, "Conversion from string to decimal would overflow")
	}
	// What is more than a decimal's digits is cut off, not rounded.
	cut := apd.Context{Precision: decimalDigits, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: apd.RoundDown}
	if _, err := cut.Round(x, x); err != nil {
		return bson.Decimal128{}, errParseNumber(s, "Conversion from string to decimal would overflow")
	}
	d := bson.DecimalFromAPD(x)
	if d.Inf() != 0 {
		return d, errParseNumber(s, "Conversion from string to decimal would overflow")
	}
	if d.IsZero() && x.Coeff.Sign() != 0 {
		return d, errParseNumber(s, "Conversion from string to decimal would underflow")
	}
	return d, nil
}

func toText(env *Env, v bson.Value, to target) (bson.Value, error) {
	switch v.Type {
	case bson.TypeString:
		return v, nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal:
		return env.String(numberText(v)), nil
	case bson.TypeBool:
		return env.String(strconv.FormatBool(v.Bool())), nil
	case bson.TypeDate:
		s, err := isoText(v.Millis())
		return env.String(s), err
	case bson.TypeObjectID:
		return env.String(hex.EncodeToString(v.Data)), nil
	case bson.TypeBinary:
		s, err := binaryText(v, to.format)
		if err != nil {
			return v, err
		}
		if len(s) >= MaxStringBytes && to.format != "utf8" {
			return v, errConversion("Resulting string value is too large for $convert: %d bytes", len(s))
		}
		return env.Text(s)
	}
	return v, unsupported(v.Type, to.kind)
}

// binaryText is binary data in a format.
func binaryText(v bson.Value, format string) (string, error) {
	subtype, data := v.Data[4], v.Data[5:] // of the old subtype 2, with its second length
	switch format {
	case "":
		return "", mongoerr.New(4341115, "Format must be speficied when converting from 'binData' to 'string' in $convert")
	case "auto":
		if subtype == uuidSubtype && len(data) == 16 {
			return uuidText(v)
		}
		return base64.StdEncoding.EncodeToString(data), nil
	case "base64":
		return base64.StdEncoding.EncodeToString(data), nil
	case "base64url":
		return base64.RawURLEncoding.EncodeToString(data), nil
	case "hex":
		return strings.ToUpper(hex.EncodeToString(data)), nil
	case "uuid":
		if subtype != uuidSubtype {
			return "", errConversion("Only the UUID subtype (%d) is allowed with the UUID format in $convert, found: %d", uuidSubtype, subtype)
		}
		return uuidText(v)
	}
	if !utf8.Valid(data) {
		return "", errConversion("BinData does not represent a valid UTF-8 string in $convert")
	}
	return string(data), nil
}

func uuidText(v bson.Value) (string, error) {
	_, u := v.Binary()
	if len(u) != 16 {
		return "", errConversion("UUID must be 16 bytes, found: %d", len(u))
	}
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
}

func toBinary(env *Env, v bson.Value, to target) (bson.Value, error) {
	switch v.Type {
	case bson.TypeBinary:
		if subtype, _ := v.Binary(); subtype != to.subtype {
			return v, errConversion("Conversions between different binData subtypes are not supported: %d to %d", subtype, to.subtype)
		}
		return v, nil
	case bson.TypeInt32:
		b := make([]byte, 4)
		byteOrder(to).PutUint32(b, uint32(v.Int32()))
		return env.Binary(to.subtype, b), nil
	case bson.TypeInt64, bson.TypeDouble:
		b := make([]byte, 8)
		byteOrder(to).PutUint64(b, binary.LittleEndian.Uint64(v.Data))
		return env.Binary(to.subtype, b), nil
	case bson.TypeString:
		b, err := parseBinary(v.Str(), to)
		return env.Binary(to.subtype, b), err
	}
	return v, unsupported(v.Type, to.kind)
}

func parseBinary(s string, to target) ([]byte, error) {
	var b []byte
	var err error
	if (to.format == "uuid") != (to.subtype == uuidSubtype) && to.format != "" && to.format != "auto" {
		return nil, errConversion("Only the UUID subtype (%d) is allowed with the UUID format in $convert", uuidSubtype)
	}
	switch to.format {
	case "":
		return nil, mongoerr.New(4341115, "Format must be speficied when converting from 'string' to 'binData' in $convert")
	case "base64":
		b, err = base64.StdEncoding.Strict().DecodeString(s)
		if strings.ContainsAny(s, "\r\n") {
			err = base64.CorruptInputError(0)
		}
	case "base64url":
		b, err = base64.RawURLEncoding.Strict().DecodeString(strings.TrimRight(s, "="))
	case "hex":
		b, err = hex.DecodeString(s)
	case "utf8":
		b = []byte(s)
	case "uuid":
		return parseUUID(s)
	default:
		return nil, errConversion("Input '%s' cannot be parsed as BinData in $convert with format '%s'", s, to.format)
	}
	if err != nil {
		return nil, errConversion("Input '%s' cannot be parsed as BinData in $convert with format '%s'", s, to.format)
	}
	return b, nil
}

func parseUUID(s string) ([]byte, error) {
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		if b, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]); err == nil {
			return b, nil
		}
	}
	return nil, errConversion("Invalid UUID string in $convert: %s", s)
}

func toObjectID(v bson.Value) (bson.Value, error) {
	switch v.Type {
	case bson.TypeObjectID:
		return v, nil
	case bson.TypeString:
		s := v.Str()
		if len(s) != 24 {
			return v, errConversion("Failed to parse objectId '%s' in $convert with no onError value: Invalid string length for parsing to OID, expected 24 but found %d", s, len(s))
		}
		b, err := hex.DecodeString(s)
		if err != nil {
			at := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) })
			_, n := utf8.DecodeRuneInString(s[at:])
			return v, errConversion("Failed to parse objectId '%s' in $convert with no onError value: Invalid character found in hex string: %s", s, s[at:at+n])
		}
		return bson.Value{Type: bson.TypeObjectID, Data: b}, nil
	}
	return v, unsupported(v.Type, bson.TypeObjectID)
}

func toDate(env *Env, v bson.Value) (bson.Value, error) {
	switch v.Type {
	case bson.TypeDate:
		return v, nil
	case bson.TypeInt64:
		return env.Date(v.Int64()), nil
	case bson.TypeDouble, bson.TypeDecimal:
		n, err := truncated(v)
		return env.Date(n), err
	case bson.TypeObjectID, bson.TypeTimestamp:
		ms, _ := dateOf(v)
		return env.Date(ms), nil
	case bson.TypeString:
		ms, err := parseDateText(v.Str(), nil)
		return env.Date(ms), err
	}
	return v, unsupported(v.Type, bson.TypeDate)
}

// dateOf is the moment that a date, timestamp or ObjectId stands for.
func dateOf(v bson.Value) (ms int64, ok bool) {
	switch v.Type {
	case bson.TypeDate:
		return v.Millis(), true
	case bson.TypeTimestamp:
		t, _ := v.Timestamp()
		return int64(t) * 1000, true
	case bson.TypeObjectID:
		return int64(int32(binary.BigEndian.Uint32(v.Data))) * 1000, true
	}
	return math.MinInt64, false
}
