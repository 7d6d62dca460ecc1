// Command compat tests kubegrace with every minor of the Kubernetes libraries that it
// supports, and prints a table of what works.
//
//	go run ./compat --root ../.. --oldest-go go1.25.14
//	go run ./compat --root ../.. --oldest-go go1.25.14 --only newest,v0.32
//
// It works on a copy of the repository in a temporary folder; the repository itself is
// not changed. From the floor, the minor that go.mod requires, up to the newest one, go.mod
// is edited to the newest patch of the minor, and everything is vetted and tested. Below the
// floor it tests internal/fork, which has the signatures of a kubelet fork, with the libraries
// replaced as such forks do. Which minors these are is said in matrix.go.
//
// The table goes to the standard output, in Markdown. Progress, and the output of whatever
// fails, go to the standard error output. The exit status is 0 if every row is ok. SIGINT and
// SIGTERM end what runs, and the temporary folder is removed.
package main
