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
	// storedName is the FDNAME of the first lock in the FD store. Further locks get -2,
	// -3 and so on appended.
	storedName = "inhibitor"
	// firstPassedFD is the number of the first descriptor that systemd passes (sd_listen_fds(3)).
	firstPassedFD = 3
	// notifyTimeout bounds the wait for space in the queue of systemd's notification socket.
	notifyTimeout = time.Second
)

// fdStore is the FD store that systemd keeps for the agent's unit
// (FileDescriptorStoreMax= in systemd.service(5)). Descriptors in it outlive the process
// and are passed to the next process of the unit. systemd does not reply: a store that is
// full or switched off closes what it receives. A nil *fdStore stores nothing.
type fdStore struct {
	socket string // the value of NOTIFY_SOCKET

	mu     sync.Mutex
	names  map[string]bool // names that are in use
	passed []*storedFile   // by the previous process, not yet adopted
}

// storedFile is a lock with a copy in the FD store.
type storedFile struct {
	name string
	file *os.File
}

// openFDStore takes over the locks that systemd has passed to this process. It replaces
// their names in LISTEN_FDNAMES, so that no other code of the process uses them; other
// descriptors stay as they are. It returns nil if NOTIFY_SOCKET is not set, that is, if
// this is not a process of a systemd unit.
func openFDStore() (*fdStore, error) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil, nil
	}
	store := &fdStore{socket: socket, names: map[string]bool{}}
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return store, nil // passed to another process, or none was passed
	}
	names := strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	for i, name := range names {
		if name != storedName && !strings.HasPrefix(name, storedName+"-") {
			continue
		}
		descriptor := firstPassedFD + i
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

// keep puts a copy of the lock into the store. FDPOLL=0 tells systemd not to drop the
// copy when the pipe reports a hang-up.
func (s *fdStore) keep(file *os.File) (*storedFile, error) {
	if s == nil {
		return nil, nil
	}
	stored := &storedFile{name: s.reserveName(), file: file}
	raw, err := file.SyscallConn()
	if err == nil {
		var failed error
		err = raw.Control(func(descriptor uintptr) {
			failed = s.notify("FDSTORE=1\nFDPOLL=0\nFDNAME="+stored.name, syscall.UnixRights(int(descriptor)))
		})
		err = errors.Join(err, failed)
	}
	if err != nil {
		s.releaseName(stored.name)
		return nil, fmt.Errorf("store the inhibitor: %w", err)
	}
	return stored, nil
}

// reserveName returns a name that no other stored lock has. FDSTOREREMOVE removes every
// descriptor of a name, so each lock needs its own.
func (s *fdStore) reserveName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := storedName
	for i := 2; s.names[name]; i++ {
		name = storedName + "-" + strconv.Itoa(i)
	}
	s.names[name] = true
	return name
}

// releaseName makes a name available again.
func (s *fdStore) releaseName(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, name)
}

// remove removes a lock from the store; nil is no lock. Call it before closing the lock:
// the delay then ends as soon as systemd has read the message.
func (s *fdStore) remove(stored *storedFile) error {
	if stored == nil {
		return nil
	}
	if err := s.notify("FDSTOREREMOVE=1\nFDNAME="+stored.name, nil); err != nil {
		return fmt.Errorf("remove the inhibitor from systemd's FD store: %w", err)
	}
	s.releaseName(stored.name)
	return nil
}

// adopt returns the locks that the previous process has left in the store, as one lock, or nil if
// there are none. There are several if that process died while it replaced one by another.
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

// notify sends one message of the sd_notify(3) protocol. The socket is not connected,
// because package net sends descriptors over unconnected datagram sockets only.
func (s *fdStore) notify(state string, rights []byte) error {
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram"})
	if err == nil {
		err = socket.SetWriteDeadline(time.Now().Add(notifyTimeout))
		if err == nil {
			_, _, err = socket.WriteMsgUnix([]byte(state), rights, &net.UnixAddr{Net: "unixgram", Name: s.socket})
		}
		err = errors.Join(err, socket.Close())
	}
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
