// Package stopwords has the words of languages that are too common to be searched for: the lists of the Snowball project.
package stopwords

import (
	"embed"
	"strings"
)

//go:embed *.txt
var lists embed.FS

// Of are the stop words of a language, by its name in English, which must be one of those that have a list.
func Of(language string) map[string]struct{} {
	list, err := lists.ReadFile(language + ".txt")
	if err != nil {
		panic(err) // it is built into the program
	}
	stop := map[string]struct{}{}
	for _, word := range strings.Fields(string(list)) {
		stop[word] = struct{}{}
	}
	return stop
}
