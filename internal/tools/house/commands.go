package main

import (
	"fmt"
	"regexp"
	"strings"
)

// gate is the shell script with all that a change has to pass. Its arguments are those of make.
const gate = ".ci/run"

// checkCommands checks the calls of make and of the gate in Markdown files, in workflows and in the gate itself. Each
// word of a call must be a target of the Makefile, or set a variable that the Makefile reads. checked is the number of calls.
func checkCommands(repo repository) (checked int, problems []string, err error) {
	content, err := repo.read("Makefile")
	if err != nil {
		return 0, nil, err
	}
	known := parseMakefile(content)
	callOfMake := regexp.MustCompile(`^\s*(?:- )?(?:run: )?(?:make|\.ci/run)\s+([^#>|&;]+)`)
	pages, err := readPages(repo)
	if err != nil {
		return 0, nil, err
	}
	for _, file := range repo.files {
		lines := pages[file].code // nil for a file that is no page
		if file == gate || strings.HasPrefix(file, workflows) {
			content, err := repo.read(file)
			if err != nil {
				return checked, problems, err
			}
			lines = strings.Split(string(content), "\n")
		}
		for _, line := range lines {
			call := callOfMake.FindStringSubmatch(line)
			if call == nil {
				continue
			}
			checked++
			arguments := call[1]
			for _, name := range unknownNames(arguments, known) {
				problems = append(problems, fmt.Sprintf("%s: %s: the Makefile has no %s", file, strings.TrimSpace(line), name))
			}
		}
	}
	return checked, problems, nil
}

// unknownNames returns the names in the arguments of a call of make that the Makefile does not have. TARGET must be a known
// target, and the NAME of NAME=VALUE a known variable. A name in capitals is a variable, any other is a target.
func unknownNames(arguments string, known map[string]bool) []string {
	var unknown []string
	withoutSpaces := regexp.MustCompile(`\$\{\{.*?\}\}|'[^']*'`).ReplaceAllString(arguments, "x") // a value may have spaces
	for word := range strings.FieldsSeq(withoutSpaces) {
		name, _, hasValue := strings.Cut(word, "=")
		isVariable := strings.ToUpper(name) == name
		if !known[name] || hasValue != isVariable {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// parseMakefile returns the names of the targets and of the variables of a Makefile. A name in capitals is a
// variable, any other is a target.
func parseMakefile(content []byte) map[string]bool {
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([A-Za-z0-9_-]+):(?:[^=]|$)|\$[({]([A-Z_]+)[)}]|\b([A-Z_]+) \?=`).FindAllStringSubmatch(string(content), -1) {
		found[match[1]+match[2]+match[3]] = true // two of the three groups are ""
	}
	return found
}
