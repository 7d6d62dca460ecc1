//go:build linux

package logindhost

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
)

// FDStore is a fake of systemd's FD store for one unit. It never polls the descriptors, as with FDPOLL=0.
type FDStore struct {
	// Socket is the unit's NOTIFY_SOCKET.
	Socket string

	t        testing.TB
	capacity int            // how many descriptors the store takes
	conn     *net.UnixConn  // receives the messages of the unit
	looping  sync.WaitGroup // the goroutine of loop

	mu       sync.Mutex
	stored   map[string]*os.File // by name
	messages []string
}

// StartFDStore starts the FD store of a unit whose FileDescriptorStoreMax is capacity. It ends with the test.
func StartFDStore(t testing.TB, capacity int) *FDStore {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // the path of t.TempDir may be too long for a socket
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	s := &FDStore{t: t, capacity: capacity, Socket: filepath.Join(dir, "socket"), stored: map[string]*os.File{}}
	s.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: s.Socket})
	must(t, err)
	s.looping.Add(1)
	go func() {
		defer s.looping.Done()
		s.loop()
	}()
	t.Cleanup(s.close)
	return s
}

// close ends the loop and closes the stored descriptors.
func (s *FDStore) close() {
	_ = s.conn.Close() // ends the loop
	s.looping.Wait()
	for _, file := range s.stored {
		_ = file.Close() // nothing was written
	}
}

// loop handles each message of the unit until the socket is closed.
func (s *FDStore) loop() {
	text, rights := make([]byte, 4096), make([]byte, 4096)
	for {
		n, oob, _, _, err := s.conn.ReadMsgUnix(text, rights)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // skip a message that cannot be read
			continue
		}
		s.handle(string(text[:n]), descriptorsIn(rights[:oob]))
	}
}

// descriptorsIn returns the descriptors of a message.
func descriptorsIn(rights []byte) []*os.File {
	var files []*os.File
	messages, _ := syscall.ParseSocketControlMessage(rights) // written by the kernel, so always valid
	for _, message := range messages {
		descriptors, _ := syscall.ParseUnixRights(&message)
		for _, descriptor := range descriptors {
			files = append(files, os.NewFile(uintptr(descriptor), "stored"))
		}
	}
	return files
}

// handle does what systemd does with a message and its descriptors. FDSTOREREMOVE=1 removes the stored descriptor
// with the name FDNAME. FDSTORE=1 stores the message's descriptors under that name, unless the store is full or has
// the name.
func (s *FDStore) handle(message string, files []*os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, message)
	name := field(message, "FDNAME")
	if field(message, "FDSTOREREMOVE") == "1" {
		if file, ok := s.stored[name]; ok {
			_ = file.Close() // nothing was written
			delete(s.stored, name)
		}
	}
	for _, file := range files {
		if field(message, "FDSTORE") == "1" && len(s.stored) < s.capacity && s.stored[name] == nil {
			s.stored[name] = file
			continue
		}
		_ = file.Close() // the store is full or has the name; systemd only logs that
	}
}

// field returns the value of the line name=value of a message; "" if there is none.
func field(message, name string) string {
	for line := range strings.Lines(message) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return value
		}
	}
	return ""
}

// Names returns the sorted names of the stored descriptors.
func (s *FDStore) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.stored))
}

// Messages returns all received messages.
func (s *FDStore) Messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Command returns the command of the unit's process. Start it with [FDStore.Start].
func (s *FDStore) Command(program string, args ...string) *exec.Cmd {
	// LISTEN_PID is known only after the start, so a shell sets it and then execs the program.
	cmd := exec.CommandContext(s.t.Context(), "/bin/sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, program}, args...)...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.Socket)
	return cmd
}

// Start starts the command and passes descriptors to it, in systemd's order: first the others, such as sockets of the
// unit, sorted by name, and then all stored ones, sorted by name.
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
