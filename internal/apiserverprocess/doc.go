// Package apiserverprocess starts a real API server for a test, as a process of its own:
//
//	url := apiserverprocess.Start(t)
//	client, err := kubernetes.NewForConfig(&rest.Config{Host: url})
//
// The server is the program of internal/apiserver, whose documentation lists what it
// serves and what it leaves out. It starts empty, serves one test and ends with it. To
// cause faults, put [github.com/kubegrace/kubegrace/internal/apiserverproxy] in front of
// it.
//
// # Requirements
//
// The go command. The program is a module of its own that the test's go.mod does not
// require. [Start] builds it into .cache of the repository, which takes a second if it is
// up to date, and minutes if the build cache is empty; a notice on the standard error says
// so. Only one build runs on a machine at a time: others wait for a lock in the build
// cache. If the environment variable KUBEGRACE_APISERVER has the path of a program, that
// program is started instead, as by make check. This is needed where go.mod has other
// versions of the Kubernetes libraries, as in make compat, because the module does not
// build with them.
//
// # Concurrency properties
//
// Parallel tests may call [Start]. Do not use the server in testing/synctest bubbles,
// because it is reached over TCP.
//
// # Failure modes
//
// The test fails if the build fails, if the server is not ready within a minute, or if
// the server dies before the test ends. The log of a failed test has the server's log.
// Without the go command the test is skipped, and with go test -short where the program would
// have to be built. If the test binary is killed, the server's standard input ends, and with
// it the server.
package apiserverprocess
