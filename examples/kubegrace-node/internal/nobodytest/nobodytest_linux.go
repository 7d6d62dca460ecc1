// Package nobodytest runs a test's own program a second time, as the user nobody.
package nobodytest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// UID is the user ID of nobody, and the group ID of its group.
const UID = 65534

// Program copies the program of this test into a folder that the user nobody can read, and returns the path of
// the copy.
func Program(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "program") // not t.TempDir: other users cannot enter its folders
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, os.Chmod(folder, 0o755)) //nolint:gosec // the other user has to enter it
	program := filepath.Join(folder, "test")
	source, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer source.Close()                                                //nolint:errcheck // it is only read
	target, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // others run it
	require.NoError(t, err)
	_, err = io.Copy(target, source)
	require.NoError(t, err)
	require.NoError(t, target.Chmod(0o755)) //nolint:gosec // whatever the umask is
	require.NoError(t, target.Close())
	return program
}

// Command returns a command that runs one test of a program as the user nobody, or as the current user if that
// is not root. The process is killed at the end of t.
func Command(t testing.TB, program, test string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, "-test.run=^"+test+"$")
	command.Dir = filepath.Dir(program)
	if os.Getuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: UID, Gid: UID}}
	}
	return command
}
