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

// onTerminal runs the agent on a terminal of a width until its shutdown is over, and gives
// what was written there.
func onTerminal(t *testing.T, columns uint16, env []string, while func(resize func(columns uint16))) string {
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
	if while != nil {
		while(resize)
	}
	var said strings.Builder
	text := make([]byte, 4096)
	require.NoError(t, master.SetReadDeadline(time.Now().Add(20*time.Second)))
	for {
		n, err := master.Read(text)
		said.Write(text[:n])
		if err != nil {
			require.ErrorIs(t, err, syscall.EIO, "the agent has gone")
			break
		}
	}
	closeFile(t, master)
	require.Zero(t, p.exit())
	require.Contains(t, said.String(), "stopped in")
	return strings.ReplaceAll(said.String(), "\r\n", "\n")
}

const escape = "\x1b["

func TestTerminalIsRedrawnInColour(t *testing.T) {
	t.Parallel()
	for _, columns := range []uint16{40, 80} {
		said := onTerminal(t, columns, []string{"TERM=xterm", "NO_COLOR="}, nil)
		require.Contains(t, said, "\r"+escape+"J", "what was drawn is taken away")
		require.Regexp(t, `\x1b\[\d+m`, said)
		require.Contains(t, said, "DOING NOW")
	}
}

func TestNoColour(t *testing.T) {
	t.Parallel()
	said := onTerminal(t, 80, []string{"TERM=xterm", "NO_COLOR=1"}, nil)
	require.Contains(t, said, "\r"+escape+"J")
	require.NotRegexp(t, `\x1b\[\d+m`, said)
}

// A terminal that can do nothing gets lines, as a pipe does.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"TERM=dumb", "TERM="} {
		said := onTerminal(t, 80, []string{kind}, nil)
		require.NotContains(t, said, "\x1b")
		require.Contains(t, said, "got SIGTERM, is ending")
	}
}

func TestTerminalThatIsResized(t *testing.T) {
	t.Parallel()
	said := onTerminal(t, 120, []string{"TERM=xterm", "NO_COLOR="}, func(resize func(uint16)) {
		for range 10 {
			resize(40)
			<-time.After(30 * time.Millisecond)
			resize(100)
			<-time.After(30 * time.Millisecond)
		}
		resize(60)
	})
	_, end, found := strings.Cut(said, "OUTCOME")
	require.True(t, found)
	for line := range strings.Lines(end) {
		require.Less(t, len([]rune(strings.TrimSuffix(line, "\n"))), 60)
	}
}
