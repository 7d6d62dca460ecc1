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

const (
	startTimeout = time.Minute
	stopTimeout  = 10 * time.Second
)

var server program //nolint:gochecknoglobals // the tests of a binary have nothing else in common

// Start runs an API server until the end of the test and gives its URL, as rest.Config
// has it in its Host. The server is ready. Errors fail the test.
func Start(t testing.TB) (url string) {
	t.Helper()
	need.Program(t, "go", "golang-go")
	path, err := server.build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := start(path, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("the API server did not end well: %v", err)
		}
		if t.Failed() {
			t.Logf("the API server's log:\n%s", p.log.String())
		}
	})
	return p.url
}

// process is a running server.
type process struct {
	cmd   *exec.Cmd
	url   string
	stdin io.Closer    // whose end is the server's
	log   bytes.Buffer // to be read when the server has ended
}

// start returns when the server is ready. It stores in the folder data.
func start(path, data string) (*process, error) {
	p := &process{cmd: exec.Command(path, "--exit-on-stdin-eof", "--data", data)}
	p.cmd.Stderr = &p.log
	// The server would tell the service manager of the test that the test is ready.
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "NOTIFY_SOCKET=")
	})
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("failed to start the API server: %w", err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("failed to start the API server: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("failed to start the API server: %w", err)
	}
	p.stdin = stdin
	late := time.AfterFunc(startTimeout, func() { _ = p.cmd.Process.Kill() }) // Wait tells
	defer late.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the API server did not become ready: %w\n%s", errors.Join(err, p.stop()), p.log.String())
	}
	p.url = strings.TrimSpace(line)
	return p, nil
}

// stop ends the server and waits for it. An error is that of a server that had ended
// before, or had to be killed.
func (p *process) stop() error {
	_ = p.stdin.Close() // fails if the server has gone, of which Wait tells more
	late := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	return p.cmd.Wait()
}
