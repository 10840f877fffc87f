package collation

import (
	"bytes"
	"unicode/utf8"
)

// Keys of megabytes take long to make, and most strings differ soon. So long strings are compared by the primary weights of
// what they begin with first, of more and more of it. What decides there decides in the whole keys, for all that comes later
// comes behind it, but for the weights of the last characters: these go by what follows, which was cut off.
const (
	earlyBytes = 1 << 10 // that are looked at first
	earlyTimes = 8       // as many then
	// openWeights is more than the bytes of the weights that go by what follows: of the digits of a number, or of a character
	// and those that are joined to it.
	openWeights = 512
)

// early orders a and b by what they begin with, or is 0 where that does not tell.
func (k *keyer) early(a, b string) int {
	for n := earlyBytes; n < max(len(a), len(b)); n *= earlyTimes {
		var openA, openB int
		k.a, openA = k.beginning(k.a[:0], a, n)
		k.b, openB = k.beginning(k.b[:0], b, n)
		end := min(len(k.a)-openA, len(k.b)-openB)
		if end <= 0 {
			continue
		}
		if d := bytes.Compare(k.a[:end], k.b[:end]); d != 0 {
			return d
		}
	}
	return 0
}

// beginning appends the primary weights of the first n bytes of s, and says how many of the last are open. Where nothing is
// cut off there is their end, and none is.
func (k *keyer) beginning(dst []byte, s string, n int) (weights []byte, open int) {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s, open = s[:n], openWeights
	}
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	k.weigh(s)
	dst = append(dst, k.levels.primary...)
	if open == 0 {
		dst = append(dst, 0, 0)
	}
	return dst, open
}
