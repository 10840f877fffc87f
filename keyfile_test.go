package ebb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeyFile(t *testing.T) {
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		want       string // keys, or an error
	}{
		{"a key", "abcDEF+/=\n", 0o600, "abcDEF+/="},
		{"white space", " ab cd\n\tef\n", 0o400, "abcdef"},
		{"two keys", "- abcdef\n- ghijkl\n", 0o600, "abcdef ghijkl"},
		{"three keys", "- abcdef\n- ghijkl\n- mnopqr\n", 0o600, "Only two keys"},
		{"no key", "[]", 0o600, "Only two keys"},
		{"empty", "", 0o600, "has length 0, must be between 6 and 1024 chars"},
		{"short", "abcde", 0o600, "has length 5, must be"},
		{"long", strings.Repeat("a", 1025), 0o600, "has length 1025"},
		{"longest", strings.Repeat("a", 1024), 0o600, strings.Repeat("a", 1024)},
		{"other letters", "geheimä!", 0o600, "invalid char in key file"},
		{"a document", "{a: geheim}", 0o600, "invalid char in key file"},
		{"no YAML", "\t: [geheim", 0o600, "neither a key nor a list"},
		{"very large", strings.Repeat("a\n", maxKeyFileBytes), 0o600, "larger than"},
		{"others read it", "abcdef", 0o604, "are too open"},
		{"the group reads it", "abcdef", 0o640, "are too open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
				t.Fatal(err)
			}
			keys, err := readKeyFile(path)
			got := strings.Join(keys, " ")
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) || err != nil && strings.Contains(got, "geheim") {
				t.Errorf("%.200s", got)
			}
		})
	}
	if _, err := readKeyFile(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "Error reading file") {
		t.Error(err)
	}
	if _, err := Open(Options{Engine: InMemory, Port: AnyPort, KeyFile: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a server opens without its key")
	}
}
