package apiserverprocess

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/internal/need"
)

// startTimeout and stopTimeout are how long the server may take to become ready and to end. Then it is killed.
const (
	startTimeout = time.Minute
	stopTimeout  = 10 * time.Second
)

// Start runs an API server until the test ends, and returns its URL, for the Host of a rest.Config, when the
// server is ready. Errors fail the test.
func Start(t testing.TB) (url string) {
	t.Helper()
	needProgram(t)
	path, err := build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := start(path, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("the API server failed: %v", err)
		}
		if t.Failed() {
			t.Logf("the API server's log:\n%s", p.log.String())
		}
	})
	return p.url
}

// needProgram skips the test if there is no prebuilt program of the server, and it cannot be built or go test -short
// forbids the build.
func needProgram(t testing.TB) {
	t.Helper()
	if os.Getenv(prebuiltVariable) == "" {
		need.Long(t, "a real API server")
		need.Program(t, "go", "golang-go")
	}
}

// process is a running API server.
type process struct {
	cmd   *exec.Cmd
	url   string
	stdin io.Closer    // the server exits when its standard input is closed
	log   bytes.Buffer // read it only after the server has exited
}

// start starts the program at path, with its data in the folder data. It returns when the server has printed its URL,
// which means that the server is ready. A server that takes longer than startTimeout is killed.
func start(path, data string) (*process, error) {
	p := &process{cmd: exec.Command(path, "--exit-on-stdin-eof", "--data", data)}
	p.cmd.Stderr = &p.log
	// With NOTIFY_SOCKET the server would notify the service manager of the test.
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "NOTIFY_SOCKET=")
	})
	stdin, errStdin := p.cmd.StdinPipe()
	stdout, errStdout := p.cmd.StdoutPipe()
	err := errors.Join(errStdin, errStdout)
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("failed to start the API server: %w", err)
	}
	p.stdin = stdin
	timeout := time.AfterFunc(startTimeout, func() { _ = p.cmd.Process.Kill() }) // p.stop returns the error
	defer timeout.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the API server did not become ready: %w\n%s", errors.Join(err, p.stop()), p.log.String())
	}
	p.url = strings.TrimSpace(line)
	return p, nil
}

// stop stops the server and waits for it. It returns an error if the server had already exited or had to be
// killed.
func (p *process) stop() error {
	_ = p.stdin.Close() // fails if the server has exited, which Wait reports
	timeout := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	defer timeout.Stop()
	return p.cmd.Wait()
}
