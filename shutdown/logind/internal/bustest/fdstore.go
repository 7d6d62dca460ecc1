//go:build linux

package bustest

import (
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// FDStore is the FD store that systemd keeps for one unit. It takes part in no
// poll, as if FDPOLL=0 were always set.
type FDStore struct {
	// Socket is the NOTIFY_SOCKET of the unit.
	Socket string

	t    testing.TB
	max  int
	conn *net.UnixConn
	read sync.WaitGroup

	mu       sync.Mutex
	stored   map[string]*os.File // by name
	messages []string
}

// StartFDStore gives a unit with FileDescriptorStoreMax=most until the test ends.
func StartFDStore(t testing.TB, most int) *FDStore {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // the test's own may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	s := &FDStore{t: t, max: most, Socket: filepath.Join(dir, "socket"), stored: map[string]*os.File{}}
	s.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: s.Socket})
	require.NoError(t, err)
	s.read.Go(s.loop)
	t.Cleanup(s.close)
	return s
}

func (s *FDStore) close() {
	_ = s.conn.Close() // ends the loop
	s.read.Wait()
	for _, file := range s.stored {
		_ = file.Close() // it was only kept
	}
}

func (s *FDStore) loop() {
	text, rights := make([]byte, 4096), make([]byte, 4096)
	for {
		n, oob, _, _, err := s.conn.ReadMsgUnix(text, rights)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		s.handle(string(text[:n]), received(rights[:oob]))
	}
}

// received gives the descriptors of a message.
func received(rights []byte) []*os.File {
	var files []*os.File
	messages, _ := syscall.ParseSocketControlMessage(rights) // of the kernel
	for _, message := range messages {
		descriptors, _ := syscall.ParseUnixRights(&message)
		for _, descriptor := range descriptors {
			files = append(files, os.NewFile(uintptr(descriptor), "stored"))
		}
	}
	return files
}

// handle does what systemd does with a message.
func (s *FDStore) handle(message string, files []*os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, message)
	name := field(message, "FDNAME")
	if field(message, "FDSTOREREMOVE") == "1" {
		if file, ok := s.stored[name]; ok {
			_ = file.Close() // it was only kept
			delete(s.stored, name)
		}
	}
	for _, file := range files {
		if field(message, "FDSTORE") == "1" && len(s.stored) < s.max && s.stored[name] == nil {
			s.stored[name] = file
			continue
		}
		_ = file.Close() // full: systemd says so in its log only
	}
}

func field(message, name string) string {
	for line := range strings.Lines(message) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return value
		}
	}
	return ""
}

// Names are the names of what is stored, sorted.
func (s *FDStore) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.stored))
}

// Messages are all that came.
func (s *FDStore) Messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Command is the unit's process, to be started by [FDStore.Start].
func (s *FDStore) Command(program string, args ...string) *exec.Cmd {
	// LISTEN_PID is known to the process only: the shell becomes the program.
	cmd := exec.CommandContext(s.t.Context(), "/bin/sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, program}, args...)...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.Socket)
	return cmd
}

// Start starts it with all that is stored, as systemd passes it, and before that
// other descriptors, by name.
func (s *FDStore) Start(cmd *exec.Cmd, others map[string]*os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, files := range []map[string]*os.File{others, s.stored} {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			names = append(names, name)
			cmd.ExtraFiles = append(cmd.ExtraFiles, files[name])
		}
	}
	if len(names) > 0 {
		cmd.Env = append(cmd.Env, "LISTEN_FDS="+strconv.Itoa(len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	}
	return cmd.Start()
}
