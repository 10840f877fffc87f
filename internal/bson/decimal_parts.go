package bson

// Parts is the coefficient hi·2^64 + lo of a finite d and the power of ten it is multiplied by. A coefficient that is
// not canonical counts as zero.
func (d Decimal128) Parts() (hi, lo uint64, exp int) { return d.parts() }

// DecimalFromParts is the inverse of Parts; the coefficient must have at most 34 digits and exp lie in [-6176, 6111].
func DecimalFromParts(negative bool, hi, lo uint64, exp int) Decimal128 {
	d := Decimal128{High: hi | uint64(exp+6176)<<49, Low: lo}
	if negative {
		d.High |= 1 << 63
	}
	return d
}
