package testseed

import "testing"

func TestOf(t *testing.T) {
	t.Setenv(Variable, "")
	if a, b := Of(t), Of(t); a == b {
		t.Errorf("%d twice", a)
	}
	t.Setenv(Variable, "18446744073709551615")
	if got := Of(t); got != 18446744073709551615 {
		t.Errorf("got %d", got)
	}
}
