package expr

import (
	"math/big"

	"github.com/cockroachdb/apd/v3"
)

// largeAngle is angle for an x of many digits before the point, 6145 at most. It computes with integers, in units of
// 10^-scale: as many digits behind the point as x has before it, and those of a series, so that what pi is short of does not
// count, however often it is taken off.
func (s *series) largeAngle(x *apd.Decimal) (rest *apd.Decimal, quarters int64) {
	scale := x.NumDigits() + int64(x.Exponent) + seriesDigits
	units := x.Coeff.MathBigInt()
	units.Mul(units, tenTo(scale+int64(x.Exponent)))
	if x.Negative {
		units.Neg(units)
	}
	quarter := piUnits(scale)
	quarter.Rsh(quarter, 1)
	n, left := new(big.Int).DivMod(units, quarter, new(big.Int))
	if new(big.Int).Lsh(left, 1).Cmp(quarter) > 0 {
		left.Sub(left, quarter)
		n.Add(n, big.NewInt(1))
	}
	quarters = new(big.Int).And(n, big.NewInt(3)).Int64()
	rest = apd.NewWithBigInt(new(apd.BigInt).SetMathBigInt(left), -int32(scale))
	return s.one(s.ctx.Round, rest), quarters
}

// piUnits is pi in units of 10^-digits, rounded down, by Machin's formula: pi = 16 atan(1/5) - 4 atan(1/239).
func piUnits(digits int64) *big.Int {
	const guard = 10
	unit := tenTo(digits + guard)
	a, b := atanOfReciprocal(5, unit), atanOfReciprocal(239, unit)
	a.Lsh(a, 4)
	b.Lsh(b, 2)
	return a.Quo(a.Sub(a, b), tenTo(guard))
}

// atanOfReciprocal is atan(1/n) = 1/n - 1/(3n^3) + 1/(5n^5) - …, in parts of unit.
func atanOfReciprocal(n int64, unit *big.Int) *big.Int {
	power := new(big.Int).Quo(unit, big.NewInt(n))
	sum, term := new(big.Int).Set(power), new(big.Int)
	square := big.NewInt(n * n)
	for k := int64(3); power.Sign() != 0; k += 2 {
		power.Quo(power, square)
		term.Quo(power, big.NewInt(k))
		if k%4 == 3 {
			sum.Sub(sum, term)
		} else {
			sum.Add(sum, term)
		}
	}
	return sum
}

func tenTo(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }
