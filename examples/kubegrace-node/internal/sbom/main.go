// Command sbom writes the bill of materials of a Go program, in CycloneDX's JSON, from what the go
// command has stored in it:
//
//	go run ./kubegrace-node/internal/sbom PROGRAM > PROGRAM.cdx.json
//
// # Concurrency properties
//
// It has one goroutine.
//
// # Failure modes
//
// A file that is no Go program is an error, and the exit status is 1.
//
// # Testing
//
// The test reads the bill of the test's own program.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("wanted is a program")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	program := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, BOMRef: info.Path, Name: path.Base(info.Path), Version: info.Main.Version,
		Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(text))}},
	}
	components := []cyclonedx.Component{{Type: cyclonedx.ComponentTypeLibrary, BOMRef: "std", Name: "std", Version: info.GoVersion, PackageURL: "pkg:golang/std@" + info.GoVersion}}
	for _, module := range info.Deps {
		url := "pkg:golang/" + module.Path + "@" + module.Version
		components = append(components, cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, BOMRef: url, Name: module.Path, Version: module.Version, PackageURL: url})
	}
	bill := cyclonedx.NewBOM()
	bill.Metadata, bill.Components = &cyclonedx.Metadata{Component: &program}, &components
	return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
}
