package namespace

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

func TestSplit(t *testing.T) {
	for s, want := range map[string]NS{"a.b": {"a", "b"}, "a.b.c": {"a", "b.c"}, "a": {"a", ""}, "a.": {"a", ""}, "": {}} {
		if got := Split(s); got != want {
			t.Errorf("Split(%q) = %+v", s, got)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, ns := range []NS{{"a", "b"}, {"a", "b.c"}, {"a", "b c"}, {"a", "$cmd"}, {"ä", "ö"}, {strings.Repeat("a", 63), "b"}} {
		if err := ns.Check(); err != nil {
			t.Errorf("%s: %v", ns, err)
		}
	}
	for _, ns := range []NS{{"", "b"}, {"a", ""}, {"a/b", "c"}, {"a b", "c"}, {"a$", "c"}, {"a", ".b"}, {"a", "b$"}, {"a", "b\x00"}, {strings.Repeat("a", 64), "b"}} {
		if err := ns.Check(); !mongoerr.Is(err, mongoerr.InvalidNamespace) {
			t.Errorf("%q: %v", ns, err)
		}
	}
	if err := (NS{"a", strings.Repeat("b", 254)}).CheckLength(); !mongoerr.Is(err, mongoerr.InvalidNamespace) {
		t.Error(err)
	}
}
