package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// changelogFile is kept by hand, in the form of keepachangelog.com.
const changelogFile = ".github/CHANGELOG.md"

// section is what the changelog says of one version.
type section struct {
	name    string // "Unreleased", or a version without its v
	date    string // "" where there is none
	content string
}

func parseChangelog(content string) []section {
	var sections []section
	for line := range strings.Lines(content) {
		if heading := regexp.MustCompile(`^## \[(.+)\](?: - (\S+))?\s*$`).FindStringSubmatch(line); heading != nil {
			sections = append(sections, section{name: heading[1], date: heading[2]})
		} else if len(sections) > 0 {
			sections[len(sections)-1].content += line
		}
	}
	return sections
}

// entries tells whether anything is listed.
func (s section) entries() bool { return strings.Contains("\n"+s.content, "\n- ") }

// checkChangelog says what is missing in a changelog for a version.
func checkChangelog(content, version string) []string {
	var problems []string
	found := false
	for _, s := range parseChangelog(content) {
		switch s.name {
		case "Unreleased":
			if s.entries() {
				problems = append(problems, changelogFile+": what is unreleased must be moved into the section of "+version)
			}
		case strings.TrimPrefix(version, "v"):
			found = true
			if _, err := time.Parse(time.DateOnly, s.date); err != nil {
				problems = append(problems, fmt.Sprintf("%s: the section of %s must have a date: ## [%s] - YYYY-MM-DD", changelogFile, version, s.name))
			}
			if !s.entries() {
				problems = append(problems, fmt.Sprintf("%s: the section of %s lists nothing", changelogFile, version))
			}
		}
	}
	if !found {
		problems = append(problems, fmt.Sprintf("%s: has no section of %s: ## [%s] - YYYY-MM-DD", changelogFile, version, strings.TrimPrefix(version, "v")))
	}
	return problems
}

// saysBreaking tells whether the changelog announces, above the section of a version, that
// something breaks.
func saysBreaking(content, version string) bool {
	for _, s := range parseChangelog(content) {
		if s.name == strings.TrimPrefix(version, "v") {
			break
		}
		if strings.Contains(s.content, "Breaking:") {
			return true
		}
	}
	return false
}
