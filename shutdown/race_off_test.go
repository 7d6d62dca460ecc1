//go:build !race

package shutdown_test

// underRace tells that the race detector looks on.
const underRace = false
