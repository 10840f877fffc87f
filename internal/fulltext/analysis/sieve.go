package analysis

// Sieve looks for some terms in texts, without making tokens of all others.
type Sieve struct {
	bits [sieveBits / 64]uint64
}

// sieveBits is how many bits a sieve has: a word whose bit is not set is none of its terms.
const sieveBits = 1 << 12

// NewSieve is the one for some terms.
func NewSieve(terms func(yield func(string) bool)) *Sieve {
	s := &Sieve{}
	for term := range terms {
		h := uint32(hashSeed)
		for i := range len(term) {
			h = (h ^ uint32(letters[term[i]].low)) * hashPrime
		}
		s.bits[h%sieveBits/64] |= 1 << (h % 64)
	}
	return s
}

func (s *Sieve) mayHave(h uint32) bool { return s == nil || s.bits[h%sieveBits/64]&(1<<(h%64)) != 0 }

// The constants of the hash FNV-1a.
const (
	hashSeed  = 2166136261
	hashPrime = 16777619
)

// letters are what is known of a byte: what it is in lower case, whether words of ASCII have it, and whether they end there.
var letters = func() (all [256]struct {
	low        byte
	word, ends bool
}) {
	for c := range all {
		l := &all[c]
		l.low, l.word = byte(c), isASCIIWord(byte(c))
		if c >= 'A' && c <= 'Z' {
			l.low += 'a' - 'A'
		}
		l.ends = !l.word && endsWord(string([]byte{byte(c), 'a'}), 0)
	}
	return all
}()

// Sifts says that Sift can be used. It can where tokens are words in lower case.
func (a *Analyzer) Sifts() bool { return a.sifts }

// Sift shows found the tokens of a text that a sieve may have the terms of, all where that is nil, with their positions, and says how many tokens
// there are.
func (a *Analyzer) Sift(sieve *Sieve, text string, found func(term string, position int)) (positions int) {
	s := segments{text: text, most: maxTokenLength}
	for i := 0; i < len(text); {
		c := text[i]
		if !letters[c].word {
			if isDivider(text, i) {
				i++
				continue
			}
		} else {
			start, h := i, uint32(hashSeed)
			for i < len(text) && letters[text[i]].word {
				h = (h ^ uint32(letters[text[i]].low)) * hashPrime
				i++
			}
			if i-start < s.most && (i == len(text) || letters[text[i]].ends || endsWord(text, i)) {
				if sieve.mayHave(h) {
					found(lower(text[start:i]), positions)
				}
				positions++
				continue
			}
			i = start
		}
		s.start, s.end = i, i
		if s.ascii() || s.other() {
			found(lower(text[s.start:s.end]), positions)
			positions++
		}
		i = s.end
	}
	return positions
}
