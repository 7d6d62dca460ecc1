package main

import (
	"regexp"
	"strings"
)

// makefile has what a call of make may name.
type makefile struct {
	targets   map[string]bool
	variables map[string]bool // the variables that the Makefile reads
}

// parseMakefile finds the targets and the variables in a Makefile.
func parseMakefile(content []byte) makefile {
	found := makefile{targets: map[string]bool{}, variables: map[string]bool{}}
	for _, match := range regexp.MustCompile(`(?m)^([A-Za-z0-9_-]+):(?:[^=]|$)`).FindAllSubmatch(content, -1) {
		found.targets[string(match[1])] = true
	}
	for _, match := range regexp.MustCompile(`\$[({]([A-Z_]+)[)}]|\b([A-Z_]+) \?=`).FindAllSubmatch(content, -1) {
		found.variables[string(match[1])+string(match[2])] = true
	}
	return found
}

// unknown returns the targets and variables in the make commands of a shell script that the
// Makefile does not have. It checks calls of .ci/run too, which has the same arguments.
func (m makefile) unknown(script string) []string {
	var missing []string
	script = regexp.MustCompile(`\$\{\{.*?\}\}`).ReplaceAllString(script, "expression")
	script = strings.ReplaceAll(script, "\\\n", " ")
	script = regexp.MustCompile(`[;|&()]`).ReplaceAllString(script, " $0 ")
	for line := range strings.Lines(script) {
		called := false
		for word := range strings.FieldsSeq(line) {
			variable, _, sets := strings.Cut(word, "=")
			switch {
			case word == "make", strings.HasSuffix(word, ".ci/run"):
				called = true
			case strings.ContainsAny(word, ";|&()"), word == "#":
				called = false
			case !called, strings.HasPrefix(word, "-"):
			case sets && !m.variables[variable]:
				missing = append(missing, "variable "+variable)
			case !sets && !m.targets[word]:
				missing = append(missing, "target "+word)
			}
		}
	}
	return missing
}
