package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// checkPictures checks that each file in a folder "pictures" is drawn by make pictures and shown by a
// page, and that each picture that make pictures draws is there.
func checkPictures(repo repository) ([]string, error) {
	makefile, err := repo.read("Makefile")
	if err != nil {
		return nil, err
	}
	drawn := regexp.MustCompile(`[\w/-]+/pictures/[\w-]+\.\w+`).FindAllString(string(makefile), -1)
	drawn = slices.DeleteFunc(drawn, func(path string) bool { return strings.HasPrefix(path, "cache/") }) // temporary files of make pictures
	shown := map[string]bool{}
	for _, name := range repo.match("", "*.md") {
		content, err := repo.read(name)
		if err != nil {
			return nil, err
		}
		page, err := parsePage(content)
		if err != nil {
			return nil, err
		}
		for _, link := range page.links {
			shown[path.Join(path.Dir(name), link)] = true
		}
	}
	var kept, problems []string
	for _, name := range repo.files {
		if path.Base(path.Dir(name)) != "pictures" {
			continue
		}
		kept = append(kept, name)
		// A command of make pictures may run in another folder than the top one.
		if !slices.ContainsFunc(drawn, func(path string) bool { return strings.HasSuffix("/"+name, "/"+path) }) {
			problems = append(problems, name+": make pictures does not draw it")
		}
		if !shown[name] {
			problems = append(problems, name+": no page shows it")
		}
	}
	for _, path := range drawn {
		if !slices.ContainsFunc(kept, func(name string) bool { return strings.HasSuffix("/"+name, "/"+path) }) {
			problems = append(problems, fmt.Sprintf("Makefile: %s, which make pictures draws, is not kept", path))
		}
	}
	return problems, nil
}
