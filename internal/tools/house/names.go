package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// topLevel returns the names that the top folder may have, besides names that begin with a dot. A
// visitor of the repository should see the packages there, and no tools.
func topLevel() []string {
	return []string{
		"LICENSE", "Makefile", "README.md", "go.mod", "go.sum",
		"examples", "graceperiod", "internal", "lifecycle", "metrics", "shutdown", "validation",
	}
}

// emptyWords returns words that fit any content, and so say nothing about it. The package-naming rule
// of the linter forbids the same words in package clauses.
func emptyWords() []string {
	return []string{"common", "helper", "helpers", "impl", "misc", "util", "utils", "utilities"}
}

// checkNames checks the names in the top folder, looks for empty words in the names of files and
// folders, and refuses Go files that are called after an ambiguous word.
func checkNames(repo repository) ([]string, error) {
	var problems []string
	seen := map[string]bool{}
	for _, name := range repo.files {
		top, _, _ := strings.Cut(name, "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(topLevel(), top) && !seen[top] {
			seen[top] = true
			problems = append(problems, top+": does not belong into the top folder")
		}
		for part := name; part != "."; part = path.Dir(part) {
			word := emptyWord(path.Base(part))
			if word != "" && !seen[part] {
				seen[part] = true
				problems = append(problems, fmt.Sprintf("%s: %q says nothing of what is in it", part, word))
			}
		}
	}
	return problems, nil
}

// emptyWord returns the empty word in the name of a file or a folder, or the ambiguous word that is
// the whole name of a Go file; "" if there is none.
func emptyWord(base string) string {
	stem, _, _ := strings.Cut(base, ".")
	if subject := strings.TrimSuffix(stem, "_test"); path.Ext(base) == ".go" && slices.Contains(ambiguousWords(), subject) {
		return subject
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(stem), func(r rune) bool { return r == '_' || r == '-' }) {
		if slices.Contains(emptyWords(), word) {
			return word
		}
	}
	return ""
}
