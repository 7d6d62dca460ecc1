package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// changelogFile is written by hand, in the format of keepachangelog.com.
const changelogFile = ".github/CHANGELOG.md"

// section is the section of one version in the changelog.
type section struct {
	name    string // "Unreleased", or a version without its v
	date    string // "": there is none
	content string
}

// parseChangelog returns the sections in their order, the newest first.
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

// hasEntries reports whether the section lists anything.
func (s section) hasEntries() bool { return strings.Contains("\n"+s.content, "\n- ") }

// checkChangelog returns what a changelog lacks for the release of a version.
func checkChangelog(content, version string) []string {
	var problems []string
	found := false
	for _, s := range parseChangelog(content) {
		switch s.name {
		case "Unreleased":
			if s.hasEntries() {
				problems = append(problems, changelogFile+": what is unreleased must be moved into the section of "+version)
			}
		case strings.TrimPrefix(version, "v"):
			found = true
			if _, err := time.Parse(time.DateOnly, s.date); err != nil {
				problems = append(problems, fmt.Sprintf("%s: the section of %s must have a date: ## [%s] - YYYY-MM-DD", changelogFile, version, s.name))
			}
			if !s.hasEntries() {
				problems = append(problems, fmt.Sprintf("%s: the section of %s lists nothing", changelogFile, version))
			}
		}
	}
	if !found {
		problems = append(problems, fmt.Sprintf("%s: has no section of %s: ## [%s] - YYYY-MM-DD", changelogFile, version, strings.TrimPrefix(version, "v")))
	}
	return problems
}

// saysBreaking reports whether a section above that of a version contains "Breaking:".
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
