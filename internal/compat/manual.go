package compat

import (
	_ "embed"
	"strings"
)

//go:embed manual.txt
var manualText string

// manualOf is what the manual lists under a heading; commands have their versions.
func manualOf(key string) []row {
	_, text, _ := strings.Cut(manualText, "["+key+"]\n")
	text, _, _ = strings.Cut(text, "\n[")
	var out []row
	if !strings.Contains(text, ";") {
		for _, name := range strings.Fields(text) {
			out = append(out, row{name: name})
		}
		return out
	}
	for _, item := range strings.Split(text, ";") {
		if name, since, ok := strings.Cut(strings.TrimSpace(item), " "); ok {
			out = append(out, row{name: name, since: since})
		}
	}
	return out
}
