//go:build !race

package need

// raceDetector is whether the tests run with the race detector.
const raceDetector = false
