package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// workflows is where GitHub looks for workflows.
const workflows = ".github/workflows/"

// checkWorkflows checks what actionlint does not. A workflow may change nothing on GitHub. One job may attest what
// the workflow has made, but then runs no command. Each action is pinned, so that its owner cannot replace it.
// Each job has a timeout.
func checkWorkflows(repo repository) (checked int, problems []string, err error) {
	for _, name := range repo.match(path.Clean(workflows), "*.yml") {
		checked++
		content, err := repo.read(name)
		if err != nil {
			return checked, problems, err
		}
		var workflow struct {
			Permissions any
			Jobs        map[string]job
		}
		if err := yaml.Unmarshal(content, &workflow); err != nil {
			return checked, problems, fmt.Errorf("%s: %w", name, err)
		}
		if fmt.Sprint(workflow.Permissions) != "map[contents:read]" {
			problems = append(problems, name+": must say permissions: contents: read, and no more")
		}
		for id, job := range workflow.Jobs {
			if job.Permissions != nil && !job.onlyAttests() {
				problems = append(problems, fmt.Sprintf("%s: job %s: must have no permissions of its own, or run nothing and attest", name, id))
			}
			if job.Timeout == 0 {
				problems = append(problems, fmt.Sprintf("%s: job %s: must say timeout-minutes", name, id))
			}
		}
		for _, action := range unpinnedActions(content) {
			problems = append(problems, fmt.Sprintf("%s: %s must be pinned by the hash of a commit, with the version in a comment", name, action))
		}
	}
	slices.Sort(problems) // jobs are a map, which has no order
	return checked, problems, nil
}

// unpinnedActions returns the actions that a workflow uses by a name that their owner can move to other code, such as a tag.
func unpinnedActions(workflow []byte) (actions []string) {
	pinned := regexp.MustCompile(`@[0-9a-f]{40} # v[\d.]+$`)
	for _, uses := range regexp.MustCompile(`(?m)^[ -]*uses: (.*)$`).FindAllStringSubmatch(string(workflow), -1) {
		if action := uses[1]; !pinned.MatchString(action) {
			actions = append(actions, action)
		}
	}
	return actions
}

// job is a job of a workflow.
type job struct {
	Permissions any
	Timeout     int `yaml:"timeout-minutes"`
	Steps       []struct{ Run string }
}

// onlyAttests reports whether the job has the permissions to attest and no others, and runs no command.
func (j job) onlyAttests() bool {
	hasCommands := slices.ContainsFunc(j.Steps, func(step struct{ Run string }) bool { return step.Run != "" })
	return fmt.Sprint(j.Permissions) == "map[attestations:write id-token:write]" && !hasCommands
}

// checkDependabot checks that .github/dependabot.yml names every folder with a go.mod, and no other
// folder.
func checkDependabot(repo repository) (checked int, problems []string, err error) {
	const name = ".github/dependabot.yml"
	content, err := repo.read(name)
	if err != nil {
		return 0, nil, err
	}
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", name, err)
	}
	named := map[string]bool{} // the folders that the file names; true: as Go modules
	for _, update := range config.Updates {
		for _, folder := range update.Directories {
			named[folder] = named[folder] || update.Ecosystem == "gomod"
		}
	}
	for _, file := range repo.match("", "go.mod") {
		if folder := path.Join("/", path.Dir(file)); !strings.Contains(folder, "/testdata") {
			checked++
			if !named[folder] {
				problems = append(problems, fmt.Sprintf("%s: %s has a go.mod and is not named", name, folder))
			}
			delete(named, folder)
		}
	}
	for folder, isModule := range named {
		if isModule {
			problems = append(problems, fmt.Sprintf("%s: %s has no go.mod", name, folder))
		}
	}
	slices.Sort(problems)
	return checked, problems, nil
}
