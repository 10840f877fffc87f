package pcre

import (
	"regexp"
	"regexp/syntax"

	"github.com/dlclark/regexp2/v2"
)

const (
	// maxCompiledBytes is how much the patterns of one Budget may take together while they are not used.
	maxCompiledBytes = 32 << 20
	// maxLinearBytes is how much RE2 may take for one pattern: it writes out what is repeated, so that x{1000} is a thousand
	// instructions. A pattern with more is left to the other engine, which counts.
	maxLinearBytes = 8 << 20
	// instructionBytes is about what RE2 takes for one of its instructions, and patternBytes what the other engine does for a
	// byte of a pattern.
	instructionBytes = 55
	patternBytes     = 100
)

// Budget bounds what many patterns take: a command of a few megabytes has room for so many that they would fill the memory.
// Those that do not fit are compiled anew whenever they are used. It is used by one goroutine at a time.
type Budget struct{ bytes int }

// Compile is the function of that name, within the Budget. A nil Budget has no bound.
func (b *Budget) Compile(pattern, options string) (*Regexp, error) {
	r, err := Compile(pattern, options)
	if err != nil || b == nil {
		return r, err
	}
	if b.bytes+r.bytes > maxCompiledBytes {
		r.forget()
	} else {
		b.bytes += r.bytes
	}
	return r, nil
}

// forget has both engines compile the pattern when it is used, and keep nothing.
func (r *Regexp) forget() {
	if r.re2 != nil {
		r.re2 = func() *regexp.Regexp { return regexp.MustCompile(r.linear) }
	}
	r.back = func() (*regexp2.Regexp, error) { return compileBacktracking(r.backtracking) }
}

// linearBytes is about what RE2 would take for text; ok is false when it does not read it.
func linearBytes(text string) (n int, ok bool) {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, false
	}
	count, runes := instructionsOf(re)
	return instructionBytes*count + 4*runes, true
}

// instructionsOf is how many instructions re comes to when what it repeats is written out, with how many runes in its sets, which
// the repetitions share. No number gets larger than one that is much too large.
func instructionsOf(re *syntax.Regexp) (count, runes int) {
	count, runes = 1, len(re.Rune)
	if re.Op == syntax.OpLiteral {
		count += len(re.Rune)
	}
	for _, sub := range re.Sub {
		c, r := instructionsOf(sub)
		count, runes = count+c, runes+r
	}
	if re.Op == syntax.OpRepeat {
		count *= max(1, re.Min+1, re.Max)
	}
	return min(count, 1<<32), runes
}
