package bson

import "testing"

func TestDecimalParts(t *testing.T) {
	for _, text := range []string{"0", "-0", "1", "-1.50", "1E+6111", "-1E-6176", "9999999999999999999999999999999999E+6111"} {
		d, err := ParseDecimal128(text)
		if err != nil {
			t.Fatal(err)
		}
		hi, lo, exp := d.Parts()
		if got := DecimalFromParts(d.Negative(), hi, lo, exp); got != d {
			t.Errorf("%s: came back as %s", text, got)
		}
	}
}
