package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// unproven says why a word of a file names no test that runs, or nothing. The word is known to stand there.
func unproven(t *Tree, file, word, text string) string {
	switch {
	case strings.HasSuffix(file, "_test.go"):
		if !hasTest(t, path.Dir(file), word, file) {
			return fmt.Sprintf("%s has no test %q: name the Test function", file, word)
		}
		return ""
	case strings.Contains(file, "testdata/"):
		dir, _, _ := strings.Cut(file, "/testdata/")
		if !mentions(t, dir, "testdata", path.Base(file)) {
			return fmt.Sprintf("no test in %s reads %s", dir, file)
		}
		if !inCase(strings.Split(text, "\n"), word) {
			return fmt.Sprintf("%s holds %q in no case: it stands in the head of one, or between its command and its end", file, word)
		}
		return ""
	}
	for dir := path.Dir(file); ; dir = path.Dir(dir) { // a script, which a Go test above it runs
		if mentions(t, dir, path.Base(file), path.Base(path.Dir(file))) {
			break
		}
		if dir == "." {
			return fmt.Sprintf("no test runs %s", file)
		}
	}
	for line := range strings.Lines(text) {
		if strings.ContainsAny(line, "\"'`") && strings.Contains(line, word) && !strings.HasPrefix(strings.TrimSpace(line), "//") {
			return ""
		}
	}
	return fmt.Sprintf("%s has no test called %q, but a comment or a name", file, word)
}

// hasTest says whether a folder's tests, or one of its files alone, have a function of that name.
func hasTest(t *Tree, dir, name, file string) bool {
	if !strings.HasPrefix(name, "Test") {
		return false
	}
	for _, pkg := range t.Packages {
		for _, f := range pkg.Files {
			if f.Test && pkg.Dir == path.Clean(dir) && (file == "" || f.Path == file) && f.AST.Scope.Lookup(name) != nil {
				return true
			}
		}
	}
	return false
}

// mentions says whether a test of the folder names one of the words in a string, or a part of it.
func mentions(t *Tree, dir string, words ...string) bool {
	for _, pkg := range t.Packages {
		if pkg.Dir != path.Clean(dir) {
			continue
		}
		for _, f := range pkg.Files {
			if !f.Test {
				continue
			}
			for _, text := range literals(f.AST) {
				if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) }) {
					return true
				}
			}
		}
	}
	return false
}

// inCase says whether the word stands in a case of a file of cases: in the comment at its head, in its input, or in what is expected.
func inCase(lines []string, word string) bool {
	for i, line := range lines {
		if strings.Contains(line, word) && (caseFollows(lines[i:]) || caseIsOpen(lines[:i])) {
			return true
		}
	}
	return false
}

const caseEnd = "----" // between the input of a case and what is expected

// caseFollows says whether the line at the beginning belongs to a case that comes to its end before the next comment.
func caseFollows(lines []string) bool {
	begun := false
	for _, line := range lines {
		switch comment := strings.HasPrefix(line, "#"); {
		case line == caseEnd:
			return true
		case comment && begun:
			return false
		case !comment && line != "":
			begun = true
		}
	}
	return false
}

// caseIsOpen says whether the lines end in what a case expects.
func caseIsOpen(lines []string) bool {
	for _, line := range slices.Backward(lines) {
		if line == caseEnd {
			return true
		}
		if line == "" {
			return false
		}
	}
	return false
}

// literals are the strings in a file.
func literals(file *ast.File) (out []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			out = append(out, text.Value)
		}
		return true
	})
	return out
}
