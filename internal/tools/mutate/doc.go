// Command mutate breaks the logic of kubegrace on purpose, one place at a time, and
// lists the breaks that no test notices.
//
//	go run ./mutate --root ../.. --only graceperiod,shutdown/plan
//	go run ./mutate --root ../.. --sample 40 --seed 7
//
// A mutation negates a condition, moves its boundary, swaps an operator, changes a number by one,
// leaves out a statement, or drops a returned error; mutators.go has the rules. A mutant is the
// package with one mutation. The repository itself is not changed: the -overlay option of the go
// command compiles all mutants of a package into one test binary, in which an environment
// variable chooses one of them. Each mutant is run, without the race detector, with the tests that
// reach the mutated place, the quick ones first. If one of them fails or does not end in time, the
// mutant is killed. Otherwise it has survived.
//
// The file survivors.yaml has the accepted survivors, each with a reason. The exit status is 1 if
// any other mutant survives. A run also lists the entries of the file that it has killed, and those
// that no longer match a mutation of the source.
//
// New survivors and the table of all packages go to the standard output, the progress to the
// standard error output. --json writes one line of JSON for each mutant to a file.
package main
