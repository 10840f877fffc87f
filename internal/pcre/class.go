package pcre

import (
	"strings"
	"unicode/utf8"
)

// class reads […].
func (t *translation) class() error {
	t.at++
	var b strings.Builder
	negated := strings.HasPrefix(t.in[t.at:], "^")
	if negated {
		t.at++
	}
	for first := true; ; first = false {
		if t.at >= len(t.in) {
			return invalid("missing terminating ] for character class")
		}
		if t.in[t.at] == ']' && !first {
			t.at++
			break
		}
		if err := t.classItem(&b); err != nil {
			return err
		}
	}
	set := b.String()
	switch {
	case set == "" && negated:
		t.emitAtom(`[\s\S]`, `(?s:.)`)
	case set == "":
		t.noRE2()
		t.emitAtom(`(?!)`, ``)
	default:
		t.emitAtom(class(set, negated), class(set, negated))
	}
	return nil
}

// classItem reads one character, range, set or property inside a class.
func (t *translation) classItem(b *strings.Builder) error {
	rest := t.in[t.at:]
	if strings.HasPrefix(rest, `\E`) {
		t.at += 2
		return nil
	}
	if strings.HasPrefix(rest, `\Q`) {
		text, _, closed := strings.Cut(rest[2:], `\E`)
		t.at += 2 + len(text)
		if closed {
			t.at += 2
		}
		for _, r := range text {
			b.WriteString(quote(r))
		}
		return nil
	}
	if rest[0] == '[' && len(rest) > 1 && strings.IndexByte(":.=", rest[1]) >= 0 {
		if done, err := t.posix(b); done || err != nil {
			return err
		}
	}
	low, set, err := t.classMember()
	if err != nil {
		return err
	}
	if set != "" {
		b.WriteString(set)
		return nil
	}
	rest = t.in[t.at:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
		b.WriteString(quote(low))
		return nil
	}
	t.at++
	high, set, err := t.classMember()
	switch {
	case err != nil:
		return err
	case set != "":
		b.WriteString(quote(low) + `\-` + set)
		return nil
	case high < low:
		return invalid("range out of order in character class")
	}
	b.WriteString(quote(low) + "-" + quote(high))
	return nil
}

// classMember reads a character, or a set that stands for several.
func (t *translation) classMember() (rune, string, error) {
	if t.in[t.at] != '\\' {
		r, n := utf8.DecodeRuneInString(t.in[t.at:])
		t.at += n
		return r, "", nil
	}
	if t.at+1 == len(t.in) {
		return 0, "", invalid(`\ at end of pattern`)
	}
	c := t.in[t.at+1]
	if set, negated, ok := t.set(c); ok {
		t.at += 2
		if negated {
			// Only whole classes negate in both engines, but for these.
			n, known := map[byte]string{'D': `\D`, 'W': `\W`, 'S': `\S`}[c]
			if !known {
				return 0, "", unsupported(`\` + string(c) + " in a class")
			}
			return 0, t.negatedSet(n, set), nil
		}
		return 0, set, nil
	}
	switch c {
	case 'b':
		t.at += 2
		return 8, "", nil
	case 'p', 'P':
		set, negated, err := t.property()
		if negated && err == nil {
			if strings.Count(set, `\p`) != 1 || !strings.HasPrefix(set, `\p`) {
				return 0, "", unsupported("a negated property of several sets in a class")
			}
			set = `\P` + set[2:]
		}
		return 0, set, err
	case 'B', 'R', 'X':
		return 0, "", invalid("escape sequence is invalid in character class")
	}
	r, err := t.character()
	return r, "", err
}

// negatedSet is the complement of an ASCII set as ranges; under UCP the backtracking engine's own class is the nearest.
func (t *translation) negatedSet(name, set string) string {
	if t.ucp {
		t.noRE2()
		return name
	}
	switch set {
	case digitSet:
		return `\x00-\x2f\x3a-` + string(rune(utf8.MaxRune))
	case wordSet:
		return `\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-` + string(rune(utf8.MaxRune))
	}
	return `\x00-\x08\x0e-\x1f\x21-` + string(rune(utf8.MaxRune))
}

// posix reads [:name:] inside a class; done is false when it is none.
func (t *translation) posix(b *strings.Builder) (done bool, err error) {
	rest := t.in[t.at:]
	end := strings.Index(rest[2:], string(rest[1])+"]")
	if end < 0 || strings.ContainsAny(rest[2:2+end], `]\`) {
		return false, nil
	}
	if rest[1] != ':' {
		return false, invalid("POSIX collating elements are not supported")
	}
	name := rest[2 : 2+end]
	negated := strings.HasPrefix(name, "^")
	name = strings.TrimPrefix(name, "^")
	set, known := posixSets()[name]
	if !known {
		return false, invalid("unknown POSIX class name")
	}
	if t.ucp {
		if u, ok := posixUCP()[name]; ok {
			set.yes, set.no = u, ""
		}
	}
	t.at += 2 + end + 2
	if !negated {
		b.WriteString(set.yes)
		return true, nil
	}
	if set.no == "" {
		return false, unsupported("a negated POSIX class under (*UCP)")
	}
	b.WriteString(set.no)
	return true, nil
}

type posixSet struct{ yes, no string }

func posixSets() map[string]posixSet {
	top := string(rune(utf8.MaxRune))
	return map[string]posixSet{
		"alpha":  {`a-zA-Z`, `\x00-\x40\x5b-\x60\x7b-` + top},
		"alnum":  {`a-zA-Z0-9`, `\x00-\x2f\x3a-\x40\x5b-\x60\x7b-` + top},
		"ascii":  {`\x00-\x7f`, "\u0080-" + top},
		"blank":  {`\t\x20`, `\x00-\x08\x0a-\x1f\x21-` + top},
		"cntrl":  {`\x00-\x1f\x7f`, "\\x20-\\x7e\u0080-" + top},
		"digit":  {`0-9`, `\x00-\x2f\x3a-` + top},
		"graph":  {`\x21-\x7e`, `\x00-\x20\x7f-` + top},
		"lower":  {`a-z`, `\x00-\x60\x7b-` + top},
		"print":  {`\x20-\x7e`, `\x00-\x1f\x7f-` + top},
		"punct":  {`\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e`, `\x00-\x20\x30-\x39\x41-\x5a\x61-\x7a\x7f-` + top},
		"space":  {`\x09-\x0d\x20`, `\x00-\x08\x0e-\x1f\x21-` + top},
		"upper":  {`A-Z`, `\x00-\x40\x5b-` + top},
		"word":   {wordSet, `\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-` + top},
		"xdigit": {`0-9a-fA-F`, `\x00-\x2f\x3a-\x40\x47-\x60\x67-` + top},
	}
}

func posixUCP() map[string]string {
	return map[string]string{
		"alpha": `\p{L}`, "alnum": `\p{L}\p{N}`, "blank": horizontalSet, "digit": `\p{Nd}`, "lower": `\p{Ll}`,
		"space": spaceSetUCP, "upper": `\p{Lu}`, "word": wordSetUCP, "cntrl": `\p{Cc}`,
	}
}
