// Package apiserverprocess starts a real API server for a test, as a process of its
// own:
//
//	url := apiserverprocess.Start(t)
//	client, err := kubernetes.NewForConfig(&rest.Config{Host: url})
//
// The server is the program of internal/apiserver, whose documentation says what it
// serves and what it leaves out. It is empty, belongs to the test alone and ends with
// it. For faults put [github.com/kubegrace/kubegrace/internal/apiserverproxy] before
// it.
//
// # What it takes
//
// The go command. The program is a module of its own that go.mod of the test does not
// require; it is built into .cache of the repository when the first test of a binary
// starts it, which takes seconds, but minutes where the build cache has nothing of it.
// After some seconds the standard error says so. One build runs at a time on a machine:
// the others wait for a lock in the build cache. Where the variable KUBEGRACE_APISERVER
// has the path of a program, that one is started instead: with other versions of the
// Kubernetes libraries in go.mod, as make compat has them, the module does not build.
//
// # Concurrency properties
//
// [Start] may be called by parallel tests. The server is reached over TCP: keep it out
// of bubbles of testing/synctest.
//
// # Failure modes
//
// A build that fails, a server that does not become ready in a minute and one that dies
// before the end of its test fail the test; whenever a test fails its server's log is
// among the test's. Without the go command the test is skipped. A server whose test
// binary is killed sees the end of its standard input and ends too.
package apiserverprocess
