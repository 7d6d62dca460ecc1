// Command patches sees whether the direct dependencies of the modules of this repository
// are at their newest patch release, in which upstream mends faults and vulnerabilities:
//
//	cd internal/tools && go run ./patches --root ../.. . examples
//
// A patch release has the major and the minor version that go.mod has, and no
// prerelease: the minor is chosen on purpose, that of Kubernetes above all. A
// version v0.0.0-DATE-COMMIT has none. It ends with 1 if a dependency is behind, with the
// command that updates it.
//
// Versions come from the module proxy, as go list -m -versions gives them. A release that
// the proxy lists but does not give, and one that needs a newer Go than the module says, is
// named and no failure, nor is a dependency of which the proxy knows nothing. If it answers
// for none of them it cannot be reached, and the check says that it was skipped.
package main
