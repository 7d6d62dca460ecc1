// Command release lists what is missing for a release, and how the release would change the exported
// API.
//
//	go run ./release check --root ../.. v0.1.0
//	go run ./release apidiff --root ../..
//
// A release of a Go module is a tag, and there is one tag for each module that others
// import: v0.1.0 for the module of the top folder, lifecycle/virtualkubelet/v0.1.0 for that of
// the folder lifecycle/virtualkubelet. The modules below examples and internal are only for this
// repository and are never tagged.
//
// check lists what must be done before the tags can be made. It exits with status 1 if there is
// anything to do. It needs no network and changes nothing.
//
// apidiff compares the exported API of each such module with its last tag. It exits with
// status 1 if a change breaks importers and the changelog does not say "Breaking:" above the
// section of that tag.
package main
