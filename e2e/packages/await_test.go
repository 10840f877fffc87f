package packages

import (
	"os"
	"strings"
	"testing"
	"time"
)

// awaitLine waits until a file has a line with the words in it.
func awaitLine(t *testing.T, path, words string) {
	t.Helper()
	for ends := time.Now().Add(20 * time.Second); time.Now().Before(ends); time.Sleep(50 * time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), words) {
			return
		}
	}
	b, _ := os.ReadFile(path)
	t.Fatalf("%s does not say %q: %s", path, words, b)
}
