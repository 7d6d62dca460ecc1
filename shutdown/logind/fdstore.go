//go:build linux

package logind

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// storedName is the name of the first lock in the FD store; the others have a
	// number behind it.
	storedName = "inhibitor"
	// firstPassed is the first descriptor that systemd passes (sd_listen_fds(3)).
	firstPassed = 3
	// notifyTimeout bounds the wait for room in systemd's queue.
	notifyTimeout = time.Second
)

// fdStore is systemd's FD store of this unit: descriptors that are put there
// outlive the process and are passed to the next one (FileDescriptorStoreMax= in
// systemd.service(5)). systemd answers nothing; a store that is full or switched
// off closes what it gets. A nil store keeps nothing.
type fdStore struct {
	socket string // NOTIFY_SOCKET

	mu     sync.Mutex
	names  map[string]bool // in use
	passed []*storedFile   // by the process before us, not yet used
}

// storedFile is a lock that is in the store too.
type storedFile struct {
	name string
	file *os.File
}

// openFDStore takes over the locks that systemd has passed to this process. They
// are taken out of LISTEN_FDNAMES, so that nobody takes them twice; whatever else
// was passed is left alone. It is nil where the agent is not a unit's process.
func openFDStore() (*fdStore, error) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil, nil
	}
	store := &fdStore{socket: socket, names: map[string]bool{}}
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return store, nil // meant for another process, or nothing was passed
	}
	names := strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	for i, name := range names {
		if name != storedName && !strings.HasPrefix(name, storedName+"-") {
			continue
		}
		descriptor := firstPassed + i
		syscall.CloseOnExec(descriptor)
		store.names[name] = true
		store.passed = append(store.passed, &storedFile{name: name, file: os.NewFile(uintptr(descriptor), name)})
		names[i] = "taken"
	}
	if len(store.passed) == 0 {
		return store, nil
	}
	if err := os.Setenv("LISTEN_FDNAMES", strings.Join(names, ":")); err != nil {
		return nil, fmt.Errorf("take the stored inhibitors: %w", err)
	}
	return store, nil
}

// keep puts a copy of the lock into the store. FDPOLL=0 leaves it there although
// nobody reads it.
func (s *fdStore) keep(file *os.File) (*storedFile, error) {
	if s == nil {
		return nil, nil
	}
	stored := &storedFile{name: s.freeName(), file: file}
	if err := s.send(stored); err != nil {
		s.release(stored.name)
		return nil, fmt.Errorf("store the inhibitor: %w", err)
	}
	return stored, nil
}

func (s *fdStore) send(stored *storedFile) error {
	raw, err := stored.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(descriptor uintptr) {
		failed = s.notify("FDSTORE=1\nFDPOLL=0\nFDNAME="+stored.name, syscall.UnixRights(int(descriptor)))
	})
	return errors.Join(err, failed)
}

// freeName reserves a name: a removal goes by name and takes all that have it.
func (s *fdStore) freeName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := storedName
	for i := 2; s.names[name]; i++ {
		name = storedName + "-" + strconv.Itoa(i)
	}
	s.names[name] = true
	return name
}

// release gives a name back.
func (s *fdStore) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, name)
}

// remove takes a lock out of the store, nil being one that is not there. It comes
// before the lock is closed, so that the host goes on as soon as systemd has read
// it.
func (s *fdStore) remove(stored *storedFile) error {
	if stored == nil {
		return nil
	}
	if err := s.notify("FDSTOREREMOVE=1\nFDNAME="+stored.name, nil); err != nil {
		return fmt.Errorf("remove the inhibitor from systemd's FD store: %w", err)
	}
	s.release(stored.name)
	return nil
}

// adopt gives the lock that the process before us left behind, nil if it left
// none. There is more than one only if it died while it changed one for another.
func (s *fdStore) adopt() *lock {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	passed := s.passed
	s.passed = nil
	s.mu.Unlock()
	if len(passed) == 0 {
		return nil
	}
	return newLock(func() error {
		var failed error
		for _, stored := range passed {
			failed = errors.Join(failed, s.remove(stored), stored.file.Close())
		}
		return failed
	})
}

// notify sends one message of sd_notify(3). The socket is not connected, because
// net passes no descriptors over a connected one.
func (s *fdStore) notify(state string, rights []byte) error {
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	err = socket.SetWriteDeadline(time.Now().Add(notifyTimeout))
	if err == nil {
		_, _, err = socket.WriteMsgUnix([]byte(state), rights, &net.UnixAddr{Net: "unixgram", Name: s.socket})
	}
	if err := errors.Join(err, socket.Close()); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
