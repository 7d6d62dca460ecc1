// Command release says what is missing for a release, and what it would change for those
// who import kubegrace.
//
//	go run ./release check --root ../.. v0.1.0
//	go run ./release apidiff --root ../..
//
// A release of a Go module is a tag, and there is one tag for each module that others
// import: v0.1.0 for the module of the top folder, lifecycle/virtualkubelet/v0.1.0 for that of
// the folder lifecycle/virtualkubelet. The modules below examples and internal are for this
// repository only and are never tagged.
//
// check lists what has to be done before the tags can be made, and exits with status 1 if
// that is anything. It asks nothing of the network and changes nothing.
//
// apidiff compares the exported API of each such module with its last tag. It exits with
// status 1 if a change breaks importers and the changelog does not say "Breaking:" above the
// section of that tag.
package main
