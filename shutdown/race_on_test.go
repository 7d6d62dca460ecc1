//go:build race

package shutdown_test

// underRace tells that the race detector looks on: it has failed itself in bubbles of 5,000 pods.
const underRace = true
