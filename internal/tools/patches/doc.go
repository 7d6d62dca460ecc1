// Command patches checks whether the direct dependencies of the modules of this repository are at
// their newest patch release:
//
//	cd internal/tools && go run ./patches --root ../.. . examples
//
// Patch releases fix faults and vulnerabilities. A patch release has the same major and minor version
// as the required one, and is no prerelease. Newer minors are not reported: a minor, above all that of
// Kubernetes, is chosen on purpose. A version v0.0.0-DATE-COMMIT has no patch releases.
//
// If a dependency is behind, the command that updates it is printed, and the exit status is 1.
//
// The versions are those of the module proxy (go list -m -versions). A release that the proxy lists
// but cannot deliver, a release that needs a newer Go than the module has, and a dependency that the
// proxy does not know are printed, but do not change the exit status. If the proxy knows none of the
// dependencies, it counts as unreachable: the check says that it was skipped, and the exit status is 0.
package main
