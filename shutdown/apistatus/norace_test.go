//go:build !race

package apistatus_test

// slowdown is what the race detector would cost.
const slowdown = 1
