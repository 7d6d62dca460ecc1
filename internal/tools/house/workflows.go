package main

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/rhysd/actionlint"
)

const (
	workflows = ".github/workflows" // the folder in which GitHub looks for workflows
	gate      = ".ci/run"           // the shell script with all that a change has to pass
)

// checkWorkflows checks all workflows with actionlint and with the rules of this repository, and the
// gate.
func checkWorkflows(repo repository) ([]string, error) {
	content, err := repo.read("Makefile")
	if err != nil {
		return nil, err
	}
	targets := parseMakefile(content)
	options := actionlint.LinterOptions{WorkingDir: repo.root}
	if config := ".github/actionlint.yaml"; repo.exists(config) {
		options.ConfigFile = filepath.Join(repo.root, filepath.FromSlash(config))
	}
	linter, err := actionlint.NewLinter(io.Discard, &options)
	if err != nil {
		return nil, err
	}
	problems, err := checkGate(repo, targets)
	if err != nil {
		return nil, err
	}
	for _, name := range append(repo.match(workflows, "*.yml"), repo.match(workflows, "*.yaml")...) {
		content, err := repo.read(name)
		if err != nil {
			return nil, err
		}
		found, err := linter.Lint(name, withTags(content), nil)
		if err != nil {
			return nil, err
		}
		for _, problem := range found {
			problems = append(problems, problem.Error())
		}
		if len(found) > 0 {
			continue // an invalid workflow cannot be parsed
		}
		workflow, _ := actionlint.Parse(content)
		problems = append(problems, checkWorkflow(name, workflow, targets)...)
	}
	return problems, nil
}

// checkGate checks the targets and variables in the lines of the gate that begin with make.
func checkGate(repo repository, targets makefile) ([]string, error) {
	if !repo.exists(gate) {
		return nil, nil
	}
	content, err := repo.read(gate)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, command := range regexp.MustCompile(`(?m)^make [^>#\n]*`).FindAllString(string(content), -1) {
		for _, missing := range targets.unknown(command) {
			problems = append(problems, fmt.Sprintf("%s: the Makefile has no %s", gate, missing))
		}
	}
	return problems, nil
}

// withTags replaces the hash by which an action is pinned with the tag in the comment after it.
// actionlint knows the inputs of actions by their tags.
func withTags(content []byte) []byte {
	return regexp.MustCompile(`@[0-9a-f]{40} # (v\d+)\S*`).ReplaceAll(content, []byte("@$1"))
}

// checkWorkflow checks a valid workflow by the rules of this repository.
func checkWorkflow(name string, workflow *actionlint.Workflow, targets makefile) []string {
	var problems []string
	if !readsOnly(workflow.Permissions) {
		problems = append(problems, name+": must say permissions: contents: read, and no more")
	}
	if workflow.Concurrency == nil {
		problems = append(problems, name+": must say concurrency, so that a newer run ends or awaits an older one")
	}
	for id, job := range workflow.Jobs {
		if job.Permissions != nil && !readsOnly(job.Permissions) {
			problems = append(problems, fmt.Sprintf("%s: job %s: must ask for no more than contents: read", name, id))
		}
		if job.TimeoutMinutes == nil {
			problems = append(problems, fmt.Sprintf("%s: job %s: must say timeout-minutes", name, id))
		}
		for _, step := range job.Steps {
			switch exec := step.Exec.(type) {
			case *actionlint.ExecAction:
				if !regexp.MustCompile(`@[0-9a-f]{40}$`).MatchString(exec.Uses.Value) {
					problems = append(problems, fmt.Sprintf("%s:%d: %s must be pinned by the hash of a commit", name, exec.Uses.Pos.Line, exec.Uses.Value))
				}
			case *actionlint.ExecRun:
				for _, missing := range targets.unknown(exec.Run.Value) {
					problems = append(problems, fmt.Sprintf("%s:%d: the Makefile has no %s", name, exec.Run.Pos.Line, missing))
				}
			}
		}
	}
	slices.Sort(problems) // jobs are a map, which has no order
	return problems
}

// readsOnly reports whether permissions allow nothing but to read the source.
func readsOnly(permissions *actionlint.Permissions) bool {
	if permissions == nil || permissions.All != nil || len(permissions.Scopes) > 1 {
		return false
	}
	contents, allowed := permissions.Scopes["contents"]
	return len(permissions.Scopes) == 0 || allowed && contents.Value.Value == "read"
}
