//go:build linux

package logindfake

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

const (
	driver     = "org.freedesktop.DBus"
	driverPath = dbus.ObjectPath("/org/freedesktop/DBus")
)

// Broker is a small D-Bus broker with a scripted logind and systemd. It needs no dbus-daemon and no
// privileges. Unlike a daemon it has no policy: every connection may own every name.
type Broker struct {
	// Address is the D-Bus address of the bus, for logind.Options.Address.
	Address string
	// Login1 and Systemd1 are the scripted services.
	Login1   *Login1
	Systemd1 *Systemd1

	folder    string        // of the sockets
	services  string        // the address for logind and systemd, where no feature is missing
	missing   map[Lack]bool // the features that are missing at Address
	listeners []net.Listener
	running   sync.WaitGroup

	mu     sync.Mutex       // guards the fields below; never held while anything is sent
	names  map[string]*peer // by unique and well-known name
	peers  map[*peer]bool
	number int // the number in the newest unique name
	closed bool
}

// StartBroker starts a broker as [NewBroker] does, until the test ends. An error fails the test.
func StartBroker(t testing.TB, lacks ...Lack) *Broker {
	t.Helper()
	b, err := NewBroker(lacks...)
	must(t, err)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// NewBroker starts a broker in a new temporary folder, without the given features. Its logind has a
// limit of 5 s. Its systemd fails to reload logind until [Systemd1.OnHangUp] is called. The caller
// closes it.
func NewBroker(lacks ...Lack) (*Broker, error) {
	b := &Broker{missing: map[Lack]bool{}, names: map[string]*peer{}, peers: map[*peer]bool{}}
	for _, lack := range lacks {
		b.missing[lack] = true
	}
	if err := b.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("logindfake: %w", err), b.Close())
	}
	return b, nil
}

// start opens the sockets and starts logind and systemd. After an error the caller calls Close.
func (b *Broker) start() (err error) {
	if b.folder, err = os.MkdirTemp("", "broker"); err != nil { // the path of t.TempDir may be too long for a socket
		return err
	}
	if b.services, err = b.listen("services"); err != nil {
		return err
	}
	if b.Login1, err = newLogin1(b.services); err != nil {
		return err
	}
	var failReloads func() // until OnHangUp sets another function
	if b.Systemd1, err = newSystemd1(b.services, failReloads); err != nil {
		return err
	}
	b.Address, err = b.listen("clients")
	return err
}

// listen accepts connections at a socket with this name, and returns its address. Programs under test connect to the
// socket "clients", where the features are missing that NewBroker was told to leave out. The scripted logind and systemd
// connect to "services", where none is missing.
func (b *Broker) listen(name string) (string, error) {
	path := filepath.Join(b.folder, name)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return "", err
	}
	b.listeners = append(b.listeners, listener)
	var missing map[Lack]bool
	if name == "clients" {
		missing = b.missing
	}
	start(&b.running, func() { b.accept(listener, missing) })
	return "unix:path=" + path, nil
}

// accept serves the connections of a listener until it is closed.
func (b *Broker) accept(listener *net.UnixListener, missing map[Lack]bool) {
	for {
		socket, err := listener.AcceptUnix()
		if err != nil {
			return // the listener is closed
		}
		p := &peer{socket: socket, missing: missing}
		if missing[LackConnections] {
			b.serve(p) // the next client waits until this one has gone
		} else {
			start(&b.running, func() { b.serve(p) })
		}
	}
}

// Close ends all connections and waits for the broker's goroutines. Locks stay held. Further calls do
// nothing, so that a test may close a broker of [StartBroker] early.
func (b *Broker) Close() error {
	b.mu.Lock()
	wasClosed := b.closed
	b.closed = true
	b.mu.Unlock()
	if wasClosed {
		return nil
	}
	var errs []error
	for _, listener := range b.listeners {
		errs = append(errs, listener.Close())
	}
	for _, p := range b.allPeers() {
		_ = p.socket.Close() // the peer may have gone
	}
	if b.Systemd1 != nil {
		b.Systemd1.object.close()
	}
	if b.Login1 != nil {
		b.Login1.Close()
		b.Login1.stopWatching()
	}
	b.running.Wait()
	return errors.Join(append(errs, os.RemoveAll(b.folder))...)
}

// serve handles a connection until it ends: first its handshake, then its messages.
func (b *Broker) serve(p *peer) {
	defer func() { _ = p.socket.Close() }() // it may be closed already
	if isOpen := b.admit(p); !isOpen {
		return
	}
	defer b.remove(p)
	if err := p.authenticate(); err != nil { // the client has gone, or its handshake is not the kubelet's
		return
	}
	for {
		message, err := p.receive()
		if err != nil {
			return
		}
		b.route(p, message)
		message.closeDescriptors()
	}
}

// admit adds a connection, so that Close closes it. isOpen says whether the broker is open: Close has not been called.
func (b *Broker) admit(p *peer) (isOpen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.peers[p] = true
	return !b.closed
}

// remove removes a closed connection, and tells the others that its names have no owner any more.
func (b *Broker) remove(p *peer) {
	b.mu.Lock()
	delete(b.peers, p)
	var lost []string
	for name, owner := range b.names {
		if owner == p {
			lost = append(lost, name)
			delete(b.names, name)
		}
	}
	b.mu.Unlock()
	for _, name := range lost {
		b.ownerChanged(name, p.name, noOwner)
	}
}

// newUniqueName, in place of a name, makes own choose a new unique name.
const newUniqueName = ""

// own makes a connection the owner of a bus name, and returns the name.
func (b *Broker) own(p *peer, name string) string {
	b.mu.Lock()
	if name == newUniqueName {
		b.number++
		name = fmt.Sprintf(":1.%d", b.number)
		p.name = name
	}
	b.names[name] = p
	b.mu.Unlock()
	b.ownerChanged(name, noOwner, p.name)
	return name
}

// owner returns the connection that owns a name; nil: none.
func (b *Broker) owner(name string) *peer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names[name]
}

// allPeers returns all open connections.
func (b *Broker) allPeers() []*peer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.peers))
}

// must fails the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
