package match

import (
	"math/big"
	"unicode/utf8"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
)

// parseBound parses minimum and maximum, which may be made exclusive by a keyword beside.
func parseBound(name, exclusive string, op, strict CompareOp) func(*schemaParsing, bson.Value) error {
	return func(p *schemaParsing, arg bson.Value) error {
		if !arg.IsNumber() {
			return typeMismatch("$jsonSchema keyword '%s' must be a number", name)
		}
		op := op
		if flag := p.source.Lookup(exclusive); flag.Type == bson.TypeBool && flag.Bool() {
			op = strict
		}
		bound := &Compare{Op: op, Value: arg}
		p.add(rule{keyword: name, applies: bson.Type.IsNumber, holds: bound.test,
			why: func(_ run, v bson.Value, b *bson.Builder) {
				b.Object("specifiedAs").Value(name, arg).Value(exclusive, p.source.Lookup(exclusive)).End().
					String("reason", "comparison failed").Value("consideredValue", v)
			}})
		return nil
	}
}

func parseExclusive(name, bound string) func(*schemaParsing, bson.Value) error {
	return func(p *schemaParsing, arg bson.Value) error {
		if p.source.Lookup(bound).IsMissing() {
			return failedToParse("$jsonSchema keyword '%s' must be a present if %s is present", bound, name)
		}
		if arg.Type != bson.TypeBool {
			return typeMismatch("$jsonSchema keyword '%s' must be a boolean", name)
		}
		return nil
	}
}

// count reads the argument of the keywords about lengths.
func count(name string, arg bson.Value) (int64, error) {
	n, err := nonNegative(name, arg)
	if err != nil {
		return 0, failedToParse("%s", err)
	}
	return n, nil
}

// within is n >= limit for the keywords that start with min, n <= limit for the others.
func within(name string, n, limit int64) bool {
	if name[:3] == "min" {
		return n >= limit
	}
	return n <= limit
}

// parseLength parses minLength and maxLength, which count code points.
func parseLength(name string) func(*schemaParsing, bson.Value) error {
	return func(p *schemaParsing, arg bson.Value) error {
		limit, err := count(name, arg)
		if err != nil {
			return err
		}
		p.add(rule{keyword: name, applies: isType(bson.TypeString),
			holds: func(_ run, v bson.Value) (bool, error) {
				return within(name, int64(utf8.RuneCountInString(v.Str())), limit), nil
			},
			why: reason(name, arg, "specified string length was not satisfied")})
		return nil
	}
}

// reason is the usual explanation: what was asked, why it does not hold, of which value.
func reason(name string, arg bson.Value, text string) func(run, bson.Value, *bson.Builder) {
	return func(_ run, v bson.Value, b *bson.Builder) {
		b.Object("specifiedAs").Value(name, arg).End().String("reason", text).Value("consideredValue", v)
	}
}

func parsePattern(p *schemaParsing, arg bson.Value) error {
	if arg.Type != bson.TypeString {
		return typeMismatch("$jsonSchema keyword 'pattern' must be a string")
	}
	re, err := p.within.patterns.Compile(arg.Str(), "")
	if err != nil {
		return err
	}
	p.add(rule{keyword: "pattern", applies: isType(bson.TypeString),
		holds: func(c run, v bson.Value) (bool, error) { return re.Match(v.Str(), c.ask()) },
		why:   reason("pattern", arg, "regular expression did not match")})
	return nil
}

func parseMultipleOf(p *schemaParsing, arg bson.Value) error {
	if !arg.IsNumber() {
		return typeMismatch("$jsonSchema keyword 'multipleOf' must be a number")
	}
	of := arg.AsDecimal()
	if of.Negative() || of.IsZero() {
		return failedToParse("$jsonSchema keyword 'multipleOf' must have a positive value")
	}
	divisor := of.APD()
	p.add(rule{keyword: "multipleOf", applies: bson.Type.IsNumber,
		holds: func(_ run, v bson.Value) (bool, error) { return isMultiple(v.AsDecimal().APD(), divisor), nil },
		why:   reason("multipleOf", arg, "considered value is not a multiple of the specified value")})
	return nil
}

// isMultiple says exactly whether a is a multiple of b, however far apart their exponents are.
func isMultiple(a, b *apd.Decimal) bool {
	if a.Form != apd.Finite || b.Form != apd.Finite {
		return a.Form == apd.Finite && b.Form == apd.Infinite && a.IsZero()
	}
	if a.IsZero() {
		return true
	}
	ac, bc := new(big.Int).Set(a.Coeff.MathBigInt()), new(big.Int).Set(b.Coeff.MathBigInt())
	ten, shift := big.NewInt(10), int64(a.Exponent)-int64(b.Exponent)
	if shift >= 0 {
		ac.Mul(ac, new(big.Int).Exp(ten, big.NewInt(shift), bc))
	} else if -shift > 40 { // no coefficient has so many digits
		return false
	} else {
		bc.Mul(bc, new(big.Int).Exp(ten, big.NewInt(-shift), nil))
	}
	return ac.Mod(ac, bc).Sign() == 0
}
