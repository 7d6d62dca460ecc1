package main

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"
)

// dependabot has the fields of .github/dependabot.yml that this repository uses.
type dependabot struct {
	Version int
	Updates []struct {
		Ecosystem   string `yaml:"package-ecosystem"`
		Directory   string
		Directories []string
		Schedule    struct{ Interval, Day string }
		Limit       *int `yaml:"open-pull-requests-limit"`
		Labels      []string
		Groups      map[string]struct {
			Patterns []string
		}
		Ignore []struct {
			Name  string   `yaml:"dependency-name"`
			Types []string `yaml:"update-types"`
		}
	}
}

// checkDependabot checks that .github/dependabot.yml names every folder with a go.mod, and no other
// folder.
func checkDependabot(repo repository) ([]string, error) {
	const name = ".github/dependabot.yml"
	var config dependabot
	if problem, err := decode(repo, name, &config); problem != "" || err != nil {
		return []string{problem}, err
	}
	var problems []string
	if config.Version != 2 {
		problems = append(problems, name+": version must be 2")
	}
	var named []string
	for _, update := range config.Updates {
		if !slices.Contains([]string{"daily", "weekly", "monthly"}, update.Schedule.Interval) {
			problems = append(problems, fmt.Sprintf("%s: %s: the interval %q is none", name, update.Ecosystem, update.Schedule.Interval))
		}
		if update.Ecosystem == "gomod" {
			named = append(named, update.Directories...)
			if update.Directory != "" {
				named = append(named, update.Directory)
			}
		}
	}
	var modules []string
	for _, file := range repo.match("", "go.mod") {
		if folder := path.Join("/", path.Dir(file)); path.Base(path.Dir(folder)) != "testdata" {
			modules = append(modules, folder)
		}
	}
	for _, folder := range modules {
		if !slices.Contains(named, folder) {
			problems = append(problems, fmt.Sprintf("%s: %s has a go.mod and is not named", name, folder))
		}
	}
	for _, folder := range named {
		if !slices.Contains(modules, folder) {
			problems = append(problems, fmt.Sprintf("%s: %s has no go.mod", name, folder))
		}
	}
	return problems, nil
}

// issueForm has the fields of a form in .github/ISSUE_TEMPLATE that this repository uses.
type issueForm struct {
	Name, Description, Title string
	Labels                   []string
	Body                     []struct {
		Type, ID    string
		Attributes  map[string]any
		Validations struct{ Required bool }
	}
}

// checkIssueForms checks what GitHub requires of an issue form. GitHub does not show an invalid form.
func checkIssueForms(repo repository) ([]string, error) {
	var problems []string
	for _, name := range repo.match(".github/ISSUE_TEMPLATE", "*.yml") {
		if path.Base(name) == "config.yml" {
			continue
		}
		var form issueForm
		if problem, err := decode(repo, name, &form); err != nil {
			return nil, err
		} else if problem != "" {
			problems = append(problems, problem)
			continue
		}
		for _, problem := range form.problems() {
			problems = append(problems, name+": "+problem)
		}
	}
	return problems, nil
}

// problems returns what GitHub would refuse in a form.
func (f issueForm) problems() []string {
	var problems []string
	if f.Name == "" || f.Description == "" {
		problems = append(problems, "must have a name and a description")
	}
	ids, asks := map[string]bool{}, false
	for i, element := range f.Body {
		needs := "label"
		switch element.Type {
		case "markdown":
			needs = "value"
		case "input", "textarea":
			asks = true
		case "dropdown", "checkboxes":
			asks = true
			if options, _ := element.Attributes["options"].([]any); len(options) == 0 {
				problems = append(problems, fmt.Sprintf("element %d has no options", i+1))
			}
		default:
			problems = append(problems, fmt.Sprintf("element %d is of the type %q", i+1, element.Type))
		}
		if text, _ := element.Attributes[needs].(string); text == "" {
			problems = append(problems, fmt.Sprintf("element %d has no %s", i+1, needs))
		}
		if element.ID != "" && ids[element.ID] {
			problems = append(problems, fmt.Sprintf("element %d has the id %s, as another has", i+1, element.ID))
		}
		ids[element.ID] = true
	}
	if !asks {
		problems = append(problems, "asks for nothing")
	}
	return problems
}

// decode decodes a YAML file, which must have only known keys. It returns a problem if the content is
// invalid, and an error if the file cannot be read.
func decode(repo repository, name string, into any) (problem string, err error) {
	content, err := repo.read(name)
	if err != nil {
		return "", err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		return fmt.Sprintf("%s: %v", name, err), nil
	}
	if err := decoder.Decode(new(any)); err != io.EOF { //nolint:errorlint // the decoder gives io.EOF itself
		return name + ": is more than one document", nil
	}
	return "", nil
}
