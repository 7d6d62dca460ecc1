//go:build race

package apistatus_test

// slowdown is about what the race detector costs.
const slowdown = 10
