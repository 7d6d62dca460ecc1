package main

import (
	"fmt"
	"regexp"
	"strings"
)

// gate is the shell script with all that a change has to pass. Its arguments are those of make.
const gate = ".ci/run"

// checkCommands checks the targets and variables in the calls of make and of the gate: those of
// pages, of workflows and of the gate itself.
func checkCommands(repo repository) (checked int, problems []string, err error) {
	content, err := repo.read("Makefile")
	if err != nil {
		return 0, nil, err
	}
	known := parseMakefile(content)
	pages, err := readPages(repo)
	if err != nil {
		return 0, nil, err
	}
	for _, name := range repo.files {
		lines := pages[name].code
		if name == gate || strings.HasPrefix(name, workflows) {
			content, err := repo.read(name)
			if err != nil {
				return checked, problems, err
			}
			lines = strings.Split(string(content), "\n")
		}
		for _, line := range lines {
			call := regexp.MustCompile(`^\s*(?:- )?(?:run: )?(?:make|\.ci/run)\s+([^#>|&;]+)`).FindStringSubmatch(line)
			if call == nil {
				continue
			}
			checked++
			for word := range strings.FieldsSeq(regexp.MustCompile(`\$\{\{.*?\}\}|'[^']*'`).ReplaceAllString(call[1], "x")) {
				variable, _, sets := strings.Cut(word, "=")
				if !known[variable] || sets != (strings.ToUpper(variable) == variable) {
					problems = append(problems, fmt.Sprintf("%s: %s: the Makefile has no %s", name, strings.TrimSpace(line), variable))
				}
			}
		}
	}
	return checked, problems, nil
}

// parseMakefile returns the targets and the variables of a Makefile. Variables are in capitals.
func parseMakefile(content []byte) map[string]bool {
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([A-Za-z0-9_-]+):(?:[^=]|$)|\$[({]([A-Z_]+)[)}]|\b([A-Z_]+) \?=`).FindAllStringSubmatch(string(content), -1) {
		found[match[1]+match[2]+match[3]] = true
	}
	return found
}
