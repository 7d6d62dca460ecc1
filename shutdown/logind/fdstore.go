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
	// storedName is the FDNAME of the first lock. Further locks get the suffix -2, -3 and so on.
	storedName = "inhibitor"
	// firstPassedFD is the first descriptor that systemd passes (sd_listen_fds(3)).
	firstPassedFD = 3
	// notifyTimeout bounds the wait for space in the queue of systemd's notification socket.
	notifyTimeout = time.Second
)

// fdStore is systemd's FD store of the agent's unit (FileDescriptorStoreMax= in systemd.service(5)). systemd
// keeps a stored file descriptor when the process dies, and passes it to the next process. It does not reply:
// a full or disabled store closes what it receives, and nobody learns of it. A nil *fdStore stores nothing.
type fdStore struct {
	socket string // the value of NOTIFY_SOCKET

	mu     sync.Mutex
	names  map[string]bool // the FDNAMEs of stored locks
	passed []*storedFile   // the locks that systemd has passed to this process, and that are not adopted yet
}

// storedFile is a lock in the store.
type storedFile struct {
	name string
	file *os.File
}

// openFDStore takes over the locks that systemd passed to this process. It replaces the names of their
// descriptors in LISTEN_FDNAMES, so that no other code of this process takes the descriptors too. It returns
// nil if NOTIFY_SOCKET is not set: the process is no systemd unit.
func openFDStore() (*fdStore, error) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil, nil
	}
	store := &fdStore{socket: socket, names: map[string]bool{}}
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return store, nil // systemd passed no descriptors to this process
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
		return nil, fmt.Errorf("take the stored locks: %w", err)
	}
	return store, nil
}

// keep sends a copy of the lock's descriptor to the store. The lock is a pipe. With FDPOLL=0, systemd keeps it
// even after logind, at the other end, has closed its side. The result is for remove; nil if nothing is stored.
func (s *fdStore) keep(file *os.File) (*storedFile, error) {
	if s == nil {
		return nil, nil
	}
	stored := &storedFile{name: s.reserveName(), file: file}
	raw, err := file.SyscallConn()
	if err == nil {
		var notifyErr error
		err = raw.Control(func(descriptor uintptr) {
			notifyErr = s.notify("FDSTORE=1\nFDPOLL=0\nFDNAME="+stored.name, syscall.UnixRights(int(descriptor)))
		})
		err = errors.Join(err, notifyErr)
	}
	if err != nil {
		s.releaseName(stored.name)
		return nil, fmt.Errorf("store the inhibitor: %w", err)
	}
	return stored, nil
}

// reserveName returns an unused name for a stored lock. Each lock needs its own: FDSTOREREMOVE removes all
// descriptors of a name.
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

// releaseName makes a name free for another lock.
func (s *fdStore) releaseName(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, name)
}

// remove asks systemd to close its copy of a lock; nil: nothing is stored. Call remove before you close this
// process's own copy: logind delays the shutdown until both are closed.
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

// adopt returns the locks that the previous process left in the store, combined into one; nil if there are none.
// There are several if the previous process died while it replaced its lock: a process takes the new lock before it
// releases the old one.
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
		errs := make([]error, 0, 2*len(passed))
		for _, stored := range passed {
			errs = append(errs, s.remove(stored), stored.file.Close())
		}
		return errors.Join(errs...)
	})
}

// notify sends one sd_notify(3) message with the descriptors in rights, which is control data or nil. The socket is not
// connected, because package net sends descriptors only over unconnected datagram sockets.
func (s *fdStore) notify(state string, rights []byte) error {
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	err = socket.SetWriteDeadline(time.Now().Add(notifyTimeout))
	if err == nil {
		_, _, err = socket.WriteMsgUnix([]byte(state), rights, &net.UnixAddr{Net: "unixgram", Name: s.socket})
	}
	if err = errors.Join(err, socket.Close()); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
