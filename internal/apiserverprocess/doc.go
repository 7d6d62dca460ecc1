// Package apiserverprocess runs a real API server for a test, in its own process:
//
//	url := apiserverprocess.Start(t)
//	client, err := kubernetes.NewForConfig(&rest.Config{Host: url})
//
// The server is the program of internal/apiserver, whose documentation lists what it serves. It starts empty
// and ends with the test. To inject faults, put
// [github.com/kubegrace/kubegrace/internal/apiserverproxy] in front of it.
//
// # Requirements
//
// [Start] needs the go command. It builds the program, which is its own module, into the repository's .cache.
// That takes a second if the program is up to date, and minutes if the build cache is empty; a message on
// standard error says so. A lock in the build cache prevents concurrent builds on one machine.
//
// If the environment variable KUBEGRACE_APISERVER has the path of a program, [Start] runs that program
// instead. make check sets it. It is required if go.mod has other versions of the Kubernetes libraries, as in
// make compat, because the module does not build with them.
//
// # Failures
//
//	what fails                                what happens
//	the build, or the server is not ready     the test fails
//	  within a minute
//	the server exits before the test ends     the test fails; its log has the server's log
//	there is no go command, or go test        the test is skipped
//	  -short would have to build the program
//	the test binary is killed                 the server exits, because its standard input ends
//
// # Concurrency
//
// Parallel tests may call [Start]. The server cannot be used in testing/synctest bubbles, because it needs
// TCP.
package apiserverprocess
