//go:build race

package shutdown_test

// underRace tells that the race detector looks on: its own runtime has crashed in the tables
// of 500 and 5,000 pods, which make check runs without it.
const underRace = true
