package expr

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestDoubleAngles holds the functions of doubles to those of decimals, which have 34 digits.
func TestDoubleAngles(t *testing.T) {
	angle := func(r *rand.Rand) float64 { return (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(7)-1)) }
	unit := func(r *rand.Rand) float64 {
		if r.IntN(4) == 0 {
			return 1 - math.Pow(10, -10*r.Float64())
		}
		return 2*r.Float64() - 1
	}
	for _, f := range []struct {
		name    string
		double  func(float64) float64
		decimal func(*apd.Decimal) *apd.Decimal
		values  func(*rand.Rand) float64
	}{
		{"sin", doubleSin, decimalSin, angle},
		{"cos", doubleCos, decimalCos, angle},
		{"tan", doubleTan, decimalTan, angle},
		{"asin", doubleAsin, decimalAsin, unit},
		{"acos", doubleAcos, decimalAcos, unit},
		{"atan", doubleAtan, decimalAtan, angle},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		const n = 1000
		wrong := 0
		for range n {
			x := f.values(r)
			want, err := f.decimal(bson.DecimalFromFloatExact(x).APD()).Float64()
			if err != nil {
				t.Fatal(err)
			}
			if got := f.double(x); got != want {
				if wrong++; wrong == 1 {
					t.Logf("%s(%v) = %v, not %v", f.name, x, got, want)
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%s is wrong %d times in %d", f.name, wrong, n)
		}
	}
	for _, f := range []func(float64) float64{doubleSin, doubleTan, doubleAsin, doubleAtan} {
		if got := f(math.Copysign(0, -1)); got != 0 || !math.Signbit(got) {
			t.Errorf("f(-0) = %v", got)
		}
		if got := f(math.NaN()); got == got {
			t.Errorf("f(NaN) = %v", got)
		}
	}
	if got := doubleSin(1e22); got != math.Sin(1e22) {
		t.Errorf("sin(1e22) = %v", got)
	}
	for x, want := range map[float64]float64{1: 0, -1: math.Pi} {
		if got := doubleAcos(x); got != want {
			t.Errorf("acos(%v) = %v", x, got)
		}
	}
}

func BenchmarkDoubleTan(b *testing.B) {
	for b.Loop() {
		doubleTan(1.25)
	}
}
