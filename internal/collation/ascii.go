package collation

// asciiWeights compares strings of printable ASCII without making keys, for places where each such character has one weight
// of its own.
type asciiWeights struct {
	primary  [128]uint32 // 0 for characters that are not covered
	tertiary [128]uint8
}

func newASCIIWeights(k *keyer) *asciiWeights {
	w := &asciiWeights{}
	for c := byte(' '); c < 0x7f; c++ {
		p, s, t := k.split(string(c))
		if len(s) != 2 || s[0] != 0 || s[1] != commonSecondary || len(t) != 1 || len(p) != 2 && len(p) != 3 {
			continue
		}
		for _, b := range p {
			w.primary[c] = w.primary[c]<<8 | uint32(b)
		}
		if len(p) == 2 { // shorter weights are below longer ones, as their first bytes are
			w.primary[c] <<= 8
		}
		w.tertiary[c] = k.tertiary(t[0])
	}
	return w
}

// compare orders a and b when both are covered. All their secondary weights are the common one.
func (w *asciiWeights) compare(a, b string, s *Spec) (order int, ok bool) {
	tertiary := 0
	n := min(len(a), len(b))
	for i := 0; i < n; i++ {
		x, y := a[i], b[i]
		if x >= 128 || y >= 128 || w.primary[x] == 0 || w.primary[y] == 0 {
			return 0, false
		}
		if order == 0 && x != y {
			order = compareInts(w.primary[x], w.primary[y])
			if tertiary == 0 {
				tertiary = compareInts(uint32(w.tertiary[x]), uint32(w.tertiary[y]))
			}
		}
	}
	for _, rest := range [2]string{a[n:], b[n:]} {
		for i := 0; i < len(rest); i++ {
			if rest[i] >= 128 || w.primary[rest[i]] == 0 {
				return 0, false
			}
		}
	}
	switch {
	case order != 0:
		return order, true
	case len(a) != len(b):
		return compareInts(uint32(len(a)), uint32(len(b))), true
	case tertiary != 0 && (s.CaseLevel || s.Strength >= 3): // the only other thing in which ASCII differs is case
		return tertiary, true
	}
	if s.Strength == 5 {
		if a < b {
			return -1, true
		}
		return 1, true
	}
	return 0, true
}

func compareInts(a, b uint32) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
