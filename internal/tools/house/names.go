package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// topLevel is all that may stand in the top folder, besides names that begin with a dot.
// Whoever looks at the repository for the first time sees the packages, not our tools.
func topLevel() []string {
	return []string{
		"LICENSE", "Makefile", "README.md", "go.mod", "go.sum",
		"examples", "graceperiod", "internal", "lifecycle", "metrics", "shutdown", "validation",
	}
}

// emptyWords are names under which anything can be put. A file is called after the type or
// the subject in it. The linter's package-naming rule has them for package clauses.
func emptyWords() []string {
	return []string{"common", "helper", "helpers", "impl", "misc", "util", "utils", "utilities"}
}

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

// emptyWord gives the empty word in the name of a file or a folder, or "".
func emptyWord(base string) string {
	stem, _, _ := strings.Cut(base, ".")
	for word := range strings.FieldsFuncSeq(strings.ToLower(stem), func(r rune) bool { return r == '_' || r == '-' }) {
		if slices.Contains(emptyWords(), word) {
			return word
		}
	}
	return ""
}
