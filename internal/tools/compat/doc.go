// Command compat tests kubegrace with every minor of the Kubernetes libraries that it
// supports, and prints a table of what works.
//
//	go run ./compat --root ../.. --oldest-go go1.25.14
//	go run ./compat --root ../.. --oldest-go go1.25.14 --only newest,v0.32
//
// It works on a copy of the repository in a temporary folder; the repository itself is not
// changed. The floor is the minor that go.mod requires. From there up to the newest minor, go.mod
// is edited to require the newest patch of the minor, and everything is vetted and tested. Below
// the floor only internal/fork is tested, which has the signatures of a kubelet fork. Its go.mod
// replaces the libraries, as that of such a fork does. matrix.go has the minors.
//
// The table goes to the standard output, in Markdown. Progress, and the output of whatever
// fails, go to the standard error output. The exit status is 0 if every row is ok. SIGINT and
// SIGTERM end the running commands, and the temporary folder is removed.
package main
