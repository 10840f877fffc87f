package match

import (
	"errors"
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
)

// integer reads the whole number that an argument named name must be; its error is a text to put behind another.
func integer(name string, v bson.Value) (int64, error) {
	if !v.IsNumber() {
		return 0, fmt.Errorf("Expected a number in: %s: %s", name, v)
	}
	if v.IsNaN() {
		return 0, fmt.Errorf("Expected an integer, but found NaN in: %s: %s", name, v)
	}
	n, exact := v.AsInt64()
	switch {
	case exact:
		return n, nil
	case v.Type == bson.TypeDouble && math.Abs(v.Double()) < 1<<63:
		return 0, fmt.Errorf("Expected an integer: %s: %s", name, v)
	}
	return 0, fmt.Errorf("Cannot represent as a 64-bit integer: %s: %s", name, v)
}

// nonNegative is integer for arguments that may not be negative.
func nonNegative(name string, v bson.Value) (int64, error) {
	n, err := integer(name, v)
	if err == nil && n < 0 {
		err = errors.New("Expected a non-negative number in: " + name + ": " + v.String())
	}
	return n, err
}
