package collation

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/collate"
	"golang.org/x/text/unicode/norm"
)

// keyer makes sort keys for one goroutine at a time.
type keyer struct {
	spec     *Spec
	collator *collate.Collator
	buf      collate.Buffer
	levels   levels
	a, b     []byte
	digit    []byte // the primary weight that numbers start with
}

// levels are the parts of a key while it is put together.
type levels struct{ primary, secondary, caseBits, tertiary, quaternary []byte }

func newKeyer(s *Spec) *keyer {
	k := &keyer{spec: s, collator: newCollator(s)}
	p, _, _ := k.split("0")
	k.digit = append(k.digit, p...)
	return k
}

const (
	maxDigits = 254 // that make one number

	commonSecondary = 0x20
	commonTertiary  = 0x02
	notShifted      = 0xFF
	lower, upper    = 1, 2
)

// key appends the key of s to dst.
func (k *keyer) key(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	k.weigh(s)
	return k.join(dst, s)
}

// weigh finds the levels of s, which is valid.
func (k *keyer) weigh(s string) {
	l := &k.levels
	l.primary, l.secondary, l.caseBits, l.tertiary, l.quaternary = l.primary[:0], l.secondary[:0], l.caseBits[:0], l.tertiary[:0], l.quaternary[:0]
	start, shifted := 0, false
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRuneInString(s[at:])
		switch {
		case k.spec.Alternate == "shifted" && k.variable(r):
			k.text(s[start:at])
			k.shift(s[at : at+n])
			shifted = true
		case shifted && unicode.Is(unicode.Mn, r): // goes with what was shifted
			k.text(s[start:at])
		case k.spec.NumericOrdering && unicode.Is(unicode.Nd, r):
			k.text(s[start:at])
			n = k.number(s[at:])
			shifted = false
		default:
			shifted = false
			at += n
			continue
		}
		at += n
		start = at
	}
	k.text(s[start:])
}

func (k *keyer) join(dst []byte, s string) []byte {
	l, spec := &k.levels, k.spec
	dst = append(dst, l.primary...)
	dst = append(dst, 0, 0)
	if spec.Strength >= 2 {
		if spec.Backwards {
			for i := len(l.secondary) - 2; i >= 0; i -= 2 {
				dst = append(dst, l.secondary[i], l.secondary[i+1])
			}
		} else {
			dst = append(dst, l.secondary...)
		}
		dst = append(dst, 0, 0)
	}
	if spec.CaseLevel {
		k.cases(s)
		dst = append(append(dst, l.caseBits...), 0)
	}
	if spec.Strength >= 3 {
		dst = append(append(dst, l.tertiary...), 0)
	}
	if spec.Strength >= 4 {
		dst = append(append(dst, l.quaternary...), 0)
	}
	if spec.Strength >= 5 {
		dst = append(dst, norm.NFD.String(s)...)
	}
	return dst
}

// split is the key of text by x/text in its three parts.
func (k *keyer) split(text string) (primary, secondary, tertiary []byte) {
	k.buf.Reset()
	key := k.collator.KeyFromString(&k.buf, text)
	at := 0
	for at+1 < len(key) && (key[at] != 0 || key[at+1] != 0) {
		if key[at]&0x80 != 0 {
			at++
		}
		at += 2
	}
	primary = key[:at]
	at += 2
	start := at
	for at+1 < len(key) && (key[at] != 0 || key[at+1] != 0) {
		at += 2
	}
	return primary, key[start:at], key[min(at+2, len(key)):]
}

// text adds a stretch of plain text.
func (k *keyer) text(s string) {
	if s == "" {
		return
	}
	l := &k.levels
	p, sec, ter := k.split(s)
	l.primary = append(l.primary, p...)
	l.secondary = append(l.secondary, sec...)
	for _, t := range ter {
		l.tertiary = append(l.tertiary, k.tertiary(t))
	}
	switch {
	case k.spec.Strength < 4:
	case k.spec.Alternate == "shifted":
		for at := 0; at < len(p); at += 2 {
			if p[at]&0x80 != 0 {
				at++
			}
			l.quaternary = append(l.quaternary, notShifted)
		}
	case k.japanese():
		for _, r := range norm.NFKD.String(s) {
			switch {
			case unicode.Is(unicode.Hiragana, r):
				l.quaternary = append(l.quaternary, 1)
			case unicode.Is(unicode.Katakana, r):
				l.quaternary = append(l.quaternary, 2)
			case !unicode.Is(unicode.Mn, r):
				l.quaternary = append(l.quaternary, notShifted)
			}
		}
	}
}

func (k *keyer) japanese() bool { return len(k.spec.Locale) >= 2 && k.spec.Locale[:2] == "ja" }

// tertiary is a tertiary weight under caseFirst; the two Japanese syllabaries differ at the next level only.
func (k *keyer) tertiary(t byte) byte {
	if k.japanese() {
		switch t {
		case 0x0F:
			t = 0x0D
		case 0x11:
			t = 0x0E
		}
	}
	isUpper := t >= 0x08 && t <= 0x0C || t == 0x1D
	switch {
	case k.spec.CaseFirst == "lower" && isUpper, k.spec.CaseFirst == "upper" && !isUpper:
		return t | 0x40
	}
	return t
}

// variable says whether alternate shifts r away.
func (k *keyer) variable(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r' || r == 0x85:
		return true
	case unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp):
		noBreak := r == 0xA0 || r == 0x2007 || r == 0x202F
		return !noBreak || k.spec.MaxVariable == "punct"
	}
	return k.spec.MaxVariable == "punct" && unicode.Is(unicode.P, r)
}

// shift adds a character that counts at the fourth level only.
func (k *keyer) shift(s string) {
	if k.spec.Strength >= 4 {
		p, _, _ := k.split(s)
		k.levels.quaternary = append(k.levels.quaternary, p...)
	}
}

// number adds the digits at the start of s as one number and says how many bytes they are. Its primary weight is that of a
// digit, then the number of digits behind leading zeros, then those digits.
func (k *keyer) number(s string) int {
	l := &k.levels
	l.primary = append(l.primary, k.digit...)
	count := len(l.primary)
	l.primary = append(l.primary, 0)
	at := 0
	for n := 0; n < maxDigits && at < len(s); n++ {
		r, size := utf8.DecodeRuneInString(s[at:])
		if !unicode.Is(unicode.Nd, r) {
			break
		}
		at += size
		if d := digitValue(r); d > 0 || len(l.primary) > count+1 {
			l.primary = append(l.primary, d+1)
		}
	}
	if len(l.primary) == count+1 {
		l.primary = append(l.primary, 1)
	}
	l.primary[count] = byte(len(l.primary) - count - 1)
	l.secondary = append(l.secondary, 0, commonSecondary)
	l.tertiary = append(l.tertiary, k.tertiary(commonTertiary))
	if k.spec.Strength >= 4 && (k.spec.Alternate == "shifted" || k.japanese()) {
		l.quaternary = append(l.quaternary, notShifted)
	}
	return at
}

// digitValue is the value of a decimal digit of any script: they stand in runs of ten.
func digitValue(r rune) byte {
	if r <= '9' {
		return byte(r - '0')
	}
	n := byte(0)
	for n < 9 && unicode.Is(unicode.Nd, r-1) {
		r--
		n++
	}
	return n
}

// cases adds the case level: what is upper and what is not, accents and shifted characters left out.
func (k *keyer) cases(s string) {
	l := &k.levels
	low, up := byte(lower), byte(upper)
	if k.spec.CaseFirst == "upper" {
		low, up = up, low
	}
	for _, r := range norm.NFKD.String(s) {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Cf, unicode.Cc), k.spec.Alternate == "shifted" && k.variable(r):
		case unicode.IsUpper(r) || unicode.IsTitle(r):
			l.caseBits = append(l.caseBits, up)
		default:
			l.caseBits = append(l.caseBits, low)
		}
	}
}
