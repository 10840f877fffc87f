package inspect

import (
	"fmt"
	"strings"
)

// Damage is what is wrong with a file.
type Damage struct {
	File string
	// Offset is where it begins; -1 where that cannot be told.
	Offset int64
	// Text says what is wrong and what is lost with it.
	Text string
	// Log is the number of the log that is damaged, 0 if it is another file: what was before the damage can be had without
	// what was behind.
	Log uint64
}

func (d Damage) String() string {
	if d.Offset < 0 {
		return fmt.Sprintf("%s %s", d.File, d.Text)
	}
	return fmt.Sprintf("%s is damaged at offset %d: %s", d.File, d.Offset, d.Text)
}

// Error says that a store is damaged.
type Error struct {
	Dir     string
	Damages []Damage
}

// namedDamages bounds how many an error names.
const namedDamages = 5

func (e *Error) Error() string {
	var texts []string
	for _, d := range e.Damages[:min(len(e.Damages), namedDamages)] {
		texts = append(texts, d.String())
	}
	if more := len(e.Damages) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("the store in %s is damaged, or an incomplete copy: %s. Nothing was changed", e.Dir, strings.Join(texts, ". "))
}

// OnlyLogs says whether nothing but logs is damaged.
func (e *Error) OnlyLogs() bool {
	for _, d := range e.Damages {
		if d.Log == 0 {
			return false
		}
	}
	return true
}
