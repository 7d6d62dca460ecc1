package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

// survivor is an entry of the file of accepted survivors.
type survivor struct {
	File     string `yaml:"file"`
	Function string `yaml:"function"` // "-": outside of functions
	Was      string `yaml:"was"`      // the line without the mutation, without comments
	Is       string `yaml:"is"`       // the line with the mutation; "(nothing)": it is left out
	Reason   string `yaml:"reason"`
}

func (s survivor) name() name { return name{file: s.File, function: s.Function, was: s.Was, is: s.Is} }

// readSurvivors reads the accepted survivors. It returns an error if an entry has no reason or is
// there twice.
func readSurvivors(file string) (map[name]survivor, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var entries []survivor
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&entries); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	survivors := make(map[name]survivor, len(entries))
	for _, s := range entries {
		if s.Reason == "" {
			return nil, fmt.Errorf("%s: no reason for %q", file, s.name())
		}
		if _, ok := survivors[s.name()]; ok {
			return nil, fmt.Errorf("%s: two entries for %q", file, s.name())
		}
		survivors[s.name()] = s
	}
	return survivors, nil
}

// entry returns the entry of a survivor for the file, with an empty reason.
func entry(n name) (string, error) {
	text, err := yaml.Marshal([]survivor{{File: n.file, Function: n.function, Was: n.was, Is: n.is}})
	return string(text), err
}
