// Command fakego replaces the go command in the tests of compat. It tests nothing and needs no
// network. Environment variables choose what it does:
//
//	FAKEGO_FAIL    the call fails if "VERSION ARGUMENTS" begins with this text
//	FAKEGO_RAISED  the version of k8s.io/api that "go list" prints for all packages
//	FAKEGO_HANG    "go test" starts a child that connects to this unix socket, and hangs
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
)

func main() {
	args := strings.Join(os.Args[1:], " ")
	if fail := os.Getenv("FAKEGO_FAIL"); fail != "" && strings.HasPrefix(kubernetes()+" "+args, fail) {
		fmt.Print("ok  \texample.com/passes\t0.1s\n?   \texample.com/empty\t[no test files]\n")
		fmt.Println("this is why:", args)
		os.Exit(1)
	}
	socket := os.Getenv("FAKEGO_HANG")
	switch {
	case os.Args[1] == "child":
		signal.Ignore(os.Interrupt)
		hang(os.Args[2])
	case strings.HasPrefix(args, "list -m -versions"):
		for _, module := range os.Args[4:] {
			fmt.Printf(`{"Path": %q, "Versions": ["v0.32.1", "v0.33.1", "v0.34.0", "v0.34.1", "v0.35.1", "v0.36.1", "v0.37.1", "v0.38.0"]}`+"\n", module)
		}
	case args == "env GOVERSION":
		fmt.Println(strings.Replace(os.Getenv("GOTOOLCHAIN"), "local", "go1.99.0", 1))
	case strings.HasPrefix(args, "list -deps"):
		fmt.Println("\nk8s.io/api " + kubernetes())
	case os.Args[1] == "vet" && replaces():
		requireAsInRepository()
	case os.Args[1] == "test" && socket != "":
		self, _ := os.Executable()
		_ = exec.Command(self, "child", socket).Start()
		select {}
	}
}

// kubernetes returns the version of k8s.io/api that the go.mod of this folder requires, or by which
// it replaces the required one.
func kubernetes() string {
	if raised := os.Getenv("FAKEGO_RAISED"); raised != "" {
		return raised
	}
	goMod, _ := os.ReadFile("go.mod")
	for _, line := range []string{`=> k8s\.io/api (v\S+)`, `require k8s\.io/api (v\S+)`} {
		if found := regexp.MustCompile(line).FindSubmatch(goMod); found != nil {
			return string(found[1])
		}
	}
	return ""
}

// replaces reports whether the go.mod of this folder replaces k8s.io/api, as that of a fork does.
func replaces() bool {
	goMod, _ := os.ReadFile("go.mod")
	return strings.Contains(string(goMod), "k8s.io/api =>")
}

// requireAsInRepository fails unless the go.mod of the copy's root is that of the repository. One
// that was edited for a newer minor would ask for a newer Go than the fork is tested with.
func requireAsInRepository() {
	copied, err := os.ReadFile("../../go.mod")
	if err != nil || !strings.Contains(string(copied), "k8s.io/api v0.34.0") {
		fmt.Printf("%v\n%s\n", err, copied)
		os.Exit(1)
	}
}

// hang connects to a socket and waits until the test ends.
func hang(socket string) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_, _ = conn.Read(make([]byte, 1)) // until the test has ended
}
