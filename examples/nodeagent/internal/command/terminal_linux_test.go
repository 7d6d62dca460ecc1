package command_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// runOnTerminal runs an agent on a terminal until its shutdown has ended, and returns its
// output. If during is not nil, it is called while the agent runs.
func runOnTerminal(t *testing.T, columns uint16, env []string, during func(resize func(columns uint16))) string {
	t.Helper()
	master, terminal := pseudoterminal(t)
	resize := func(columns uint16) {
		require.NoError(t, pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: columns}))
	}
	resize(columns)
	dir := folder(t, map[string]string{
		"web.yaml": scripted("web-of-a-deployment-with-a-long-name-7d9f8b6c5-x4x7f", "exits 1s after TERM"),
		"db.yaml":  scripted("db", "exits 500ms after TERM"),
	})
	p := prepare(t, "--manifests="+dir, "--shutdown-after=10ms", "--listen=")
	p.command.Stdin, p.command.Stdout, p.command.Stderr = terminal, terminal, terminal
	p.command.Env = append(os.Environ(), env...)
	p.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, p.command.Start())
	closeFile(t, terminal)
	if during != nil {
		during(resize)
	}
	var output strings.Builder
	text := make([]byte, 4096)
	require.NoError(t, master.SetReadDeadline(time.Now().Add(20*time.Second)))
	for {
		n, err := master.Read(text)
		output.Write(text[:n])
		if err != nil {
			require.ErrorIs(t, err, syscall.EIO, "a terminal without processes returns EIO")
			break
		}
	}
	closeFile(t, master)
	require.Zero(t, p.waitExit())
	require.Contains(t, output.String(), "stopped in")
	return strings.ReplaceAll(output.String(), "\r\n", "\n")
}

const escape = "\x1b["

func TestTerminalIsRedrawnInColour(t *testing.T) {
	t.Parallel()
	for _, columns := range []uint16{40, 80} {
		output := runOnTerminal(t, columns, []string{"TERM=xterm", "NO_COLOR="}, nil)
		require.Contains(t, output, "\r"+escape+"J", "the table is erased before it is drawn again")
		require.Regexp(t, `\x1b\[\d+m`, output)
		require.Contains(t, output, "DOING NOW")
	}
}

func TestNoColour(t *testing.T) {
	t.Parallel()
	output := runOnTerminal(t, 80, []string{"TERM=xterm", "NO_COLOR=1"}, nil)
	require.Contains(t, output, "\r"+escape+"J")
	require.NotRegexp(t, `\x1b\[\d+m`, output)
}

// A terminal that does not understand escape sequences gets lines, as a pipe does.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"TERM=dumb", "TERM="} {
		output := runOnTerminal(t, 80, []string{kind}, nil)
		require.NotContains(t, output, "\x1b")
		require.Contains(t, output, "got SIGTERM, is ending")
	}
}

func TestTerminalThatIsResized(t *testing.T) {
	t.Parallel()
	output := runOnTerminal(t, 120, []string{"TERM=xterm", "NO_COLOR="}, func(resize func(uint16)) {
		for range 10 {
			resize(40)
			<-time.After(30 * time.Millisecond)
			resize(100)
			<-time.After(30 * time.Millisecond)
		}
		resize(60)
	})
	_, end, found := strings.Cut(output, "OUTCOME")
	require.True(t, found)
	for line := range strings.Lines(end) {
		require.Less(t, len([]rune(strings.TrimSuffix(line, "\n"))), 60)
	}
}
