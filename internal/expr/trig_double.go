package expr

import "math"

// The functions of angles of package math err by a unit of the last digit or two, the C library's that MongoDB uses hardly
// ever by one. These compute with two doubles for each number, so that the last digit is nearly always right.
// TestDoubleAngles holds them to the decimal functions, which have more digits.

// twofold is the number hi + lo; lo is less than half a unit of hi's last digit.
type twofold struct{ hi, lo float64 }

func exactly(x float64) twofold { return twofold{x, 0} }

func (a twofold) plus(b twofold) twofold {
	s, lost := twoSum(a.hi, b.hi)
	return normal(s, lost+a.lo+b.lo)
}

func (a twofold) minus(b twofold) twofold { return a.plus(twofold{-b.hi, -b.lo}) }

func (a twofold) times(b twofold) twofold {
	p := a.hi * b.hi
	return normal(p, math.FMA(a.hi, b.hi, -p)+a.hi*b.lo+a.lo*b.hi)
}

func (a twofold) over(b twofold) twofold {
	q := a.hi / b.hi
	rest := a.minus(exactly(q).times(b))
	return normal(q, rest.hi/b.hi)
}

func normal(hi, lo float64) twofold {
	s := hi + lo
	return twofold{s, lo - (s - hi)}
}

// Half of pi in three parts, the first two with trailing zeros, so that their products with small integers are exact.
const (
	halfPi1 = 1.5707963267341256 // the upper 33 bits
	halfPi2 = 6.077100506303966e-11
	halfPi3 = 2.0222662487959506e-21
)

// maxTwofoldAngle is how large an angle may be that is brought into the circle here; package math does that well for larger
// ones.
const maxTwofoldAngle = 1 << 19

// sinCos gives the sine and the cosine of x and false when x is too large, or is not a number.
func sinCos(x float64) (sin, cos twofold, ok bool) {
	if !(math.Abs(x) <= maxTwofoldAngle) {
		return sin, cos, false
	}
	n := math.Round(x / (math.Pi / 2))
	r := exactly(x - n*halfPi1).minus(exactly(n * halfPi2)).minus(exactly(n).times(exactly(halfPi3)))
	sin, cos = smallSinCos(r)
	switch int64(n) & 3 {
	case 1:
		sin, cos = cos, twofold{-sin.hi, -sin.lo}
	case 2:
		sin, cos = twofold{-sin.hi, -sin.lo}, twofold{-cos.hi, -cos.lo}
	case 3:
		sin, cos = twofold{-cos.hi, -cos.lo}, sin
	}
	return sin, cos, true
}

// smallSinCos sums the series of an angle of pi/4 at most.
func smallSinCos(r twofold) (sin, cos twofold) {
	square := r.times(r)
	sin, cos = r, exactly(1)
	odd, even := r, exactly(1)
	for n := 2.0; n <= 30 && math.Abs(even.hi) > 0x1p-120; n += 2 {
		even = even.times(square).over(exactly(-(n - 1) * n))
		cos = cos.plus(even)
		odd = odd.times(square).over(exactly(-n * (n + 1)))
		sin = sin.plus(odd)
	}
	return sin, cos
}

func doubleSin(x float64) float64 {
	sin, _, ok := sinCos(x)
	if !ok || tiny(x) {
		return math.Sin(x)
	}
	return sin.hi
}

func doubleCos(x float64) float64 {
	_, cos, ok := sinCos(x)
	if !ok {
		return math.Cos(x)
	}
	return cos.hi
}

func doubleTan(x float64) float64 {
	sin, cos, ok := sinCos(x)
	if !ok || tiny(x) {
		return math.Tan(x)
	}
	return sin.over(cos).hi
}

// tiny says whether x is so near to 0 that f(x) = x + O(x^3) is x; 0 keeps its sign.
func tiny(x float64) bool { return math.Abs(x) < 0x1p-27 }

// The inverse functions take what package math finds and correct it by where it leads back to.

func doubleAsin(x float64) float64 {
	y := math.Asin(x)
	if !(math.Abs(x) < 1) || tiny(x) {
		return y
	}
	for range 2 {
		sin, cos, _ := sinCos(y)
		if cos.hi < 0x1p-20 {
			break // so near to 1 that math's square root tells all
		}
		y -= sin.minus(exactly(x)).over(cos).hi
	}
	return y
}

func doubleAcos(x float64) float64 {
	y := math.Acos(x)
	if !(math.Abs(x) < 1) {
		return y
	}
	for range 2 {
		sin, cos, _ := sinCos(y)
		if sin.hi < 0x1p-30 {
			break
		}
		y += cos.minus(exactly(x)).over(sin).hi
	}
	return y
}

func doubleAtan(x float64) float64 {
	y := math.Atan(x)
	if math.IsNaN(x) || math.IsInf(x, 0) || tiny(x) {
		return y
	}
	sin, cos, _ := sinCos(y)
	// tan(y) - x over the slope of tan, with both multiplied by cos(y)^2.
	return y - sin.minus(cos.times(exactly(x))).times(cos).hi
}
