// Package nobodytest runs the program of a test again as the user nobody.
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

// UID is the user nobody.
const UID = 65534

// Program copies the program of this test to where nobody may run it, and returns its path.
func Program(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "program") // the folders of t.TempDir are closed to other users
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, os.Chmod(folder, 0o755)) //nolint:gosec // it is to be read
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

// Command returns a command that runs one test of a program as nobody. Without root it is a process of this
// user. It is killed with the test.
func Command(t testing.TB, program, test string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, "-test.run=^"+test+"$")
	command.Dir = filepath.Dir(program)
	if os.Getuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: UID, Gid: UID}}
	}
	return command
}
