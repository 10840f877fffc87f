package command

import "strings"

// internedNames are the names that the commands of a connection had lately: nearly every command has those of the one before it,
// and a name has to outlive the message it came in.
type internedNames struct {
	kept [8]string
	next int
}

// maxWordBytes is how long a name may be to be kept.
const maxWordBytes = 256

// of is s in memory of its own. A nil one keeps nothing.
func (w *internedNames) of(s string) string {
	if w == nil {
		return strings.Clone(s)
	}
	for _, k := range w.kept {
		if k == s {
			return k
		}
	}
	return w.keep(strings.Clone(s))
}

// ofBytes is of for bytes.
func (w *internedNames) ofBytes(b []byte) string {
	for _, k := range w.kept {
		if k == string(b) {
			return k
		}
	}
	return w.keep(string(b))
}

// joined is "db.name".
func (w *internedNames) joined(db, name string) string {
	n := len(db)
	for _, k := range w.kept {
		if len(k) == n+1+len(name) && k[n] == '.' && k[:n] == db && k[n+1:] == name {
			return k
		}
	}
	return w.keep(db + "." + name)
}

func (w *internedNames) keep(s string) string {
	if len(s) <= maxWordBytes {
		w.kept[w.next] = s
		w.next = (w.next + 1) % len(w.kept)
	}
	return s
}
