package unixsocket_test

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown/unixsocket"
)

// Somebody has changed the socket's mode so that everybody may connect. The agent, which runs as root, refuses the user
// nobody (ID 65534) all the same. After that it still serves root.
func TestOtherUsersAreRefused(t *testing.T) {
	need.Root(t)
	dir, err := os.MkdirTemp("", "socket")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, "s")
	source, err := unixsocket.New(unixsocket.Options{Path: path})
	require.NoError(t, err)
	session := connect(t, source)
	require.NoError(t, os.Chmod(path, 0o666))

	heard := make(chan string)
	go func() {
		defer close(heard)
		runtime.LockOSThread() // never unlocked, so the thread ends with this goroutine
		const nobody = 65534
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			heard <- errno.Error()
			return
		}
		conn, err := net.Dial("unix", path)
		if err != nil {
			heard <- err.Error()
			return
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second)) // if the agent did not refuse, it would not reply
		_, _ = conn.Write([]byte("poweroff\n"))                // fails if the agent has closed the connection already
		line, _ := bufio.NewReader(conn).ReadString('\n')
		_ = conn.Close()
		heard <- line
	}()
	require.Equal(t, "error: user 65534 may not shut the node down\n", <-heard)
	requireReaches(t, path, session)
}

// The umask is 0, and the socket is made 300 times. A goroutine looks at the files all the time: at no moment may one of
// them have a permission for other users.
func TestTheSocketIsNeverOpenToOthers(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	source, path := newSource(t)
	var open atomic.Int32
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			entries, _ := os.ReadDir(filepath.Dir(path))
			for _, entry := range entries {
				info, err := entry.Info()
				if err == nil && strings.HasPrefix(entry.Name(), filepath.Base(path)) && info.Mode().Perm()&0o077 != 0 {
					open.Add(1)
				}
			}
		}
	}()
	for range 300 {
		session, err := source.Connect(t.Context())
		require.NoError(t, err)
		require.NoError(t, session.Close())
	}
	close(stop)
	<-stopped
	require.Zero(t, open.Load())
}
