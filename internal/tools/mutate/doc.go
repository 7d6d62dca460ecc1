// Command mutate breaks the logic of kubegrace on purpose, one place at a time, and
// lists the breaks that no test notices.
//
//	go run ./mutate --root ../.. --only graceperiod,shutdown/plan
//	go run ./mutate --root ../.. --sample 40 --seed 7
//
// A mutation negates a condition, moves its boundary, swaps an operator, changes a number by
// one, leaves out a statement, or drops an error that is returned. Which places these
// are is said in mutators.go. The repository itself is not changed: by the -overlay option of the go
// command, all mutants of a package are compiled into one test binary, in which an environment variable
// chooses one. Each is run with the tests that reach the mutated place, the quick ones first, without the
// race detector. A mutant that a test fails for, or that does not end in time, is killed; another
// has survived.
//
// The file survivors.yaml names the survivors that are accepted, with the reason for each. A
// run fails only for those that it does not name. It also says which of its entries were
// killed in this run, and which fit no place in the source any more.
//
// New survivors and the table of all packages go to the standard output, progress to the standard
// error output. With --json, each mutant becomes a line of JSON in a file.
package main
