// Command zerodowntime measures what users notice of a rolling update, with and without a
// preStop sleep:
//
//	cd examples
//	go run ./zerodowntime
//
// It sends real requests to real processes behind a real proxy, which learns late which pods
// end. README.md shows what it prints.
//
// # Concurrency properties
//
// The rolling updates run at the same time and share nothing but the output.
//
// # Failure modes
//
// Wrong flags are one line on standard error and exit status 1. A signal ends all backends;
// what was measured until then is printed, and the exit status is 130. Backends whose program
// was killed end by themselves.
//
// # Testing
//
// The tests run the program with short times.
package main
