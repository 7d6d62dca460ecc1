// Command zerodowntime measures how many HTTP requests a rolling update loses, and draws the result:
//
//	cd examples
//	go run ./zerodowntime --picture lost.svg
//
// It runs the same rolling update with five settings for the shutdown of pods. A lifecycle.Terminator stops
// the pods. README.md shows the picture and explains it.
//
// # Files
//
// Read main.go, scenario.go (the settings that are compared) and rollout.go (one rolling update) first.
// node.go has the containers, balancer.go and requests.go the traffic, and picture.go the picture.
//
// # Concurrency
//
// The rolling updates run at the same time and share nothing. Before a rolling update returns, its goroutines
// and its containers have ended.
//
// # Failures
//
// A failure or a signal ends all rolling updates. The program then says why on standard error, prints no
// result, and exits with status 1.
//
// # Testing
//
// The tests run the whole program in a testing/synctest bubble, in which buffers in memory connect clients and
// servers. Time in a bubble is simulated, so the tests take moments and do not depend on the speed of the
// machine.
package main
