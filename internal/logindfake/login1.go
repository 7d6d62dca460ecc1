//go:build linux

package logindfake

import (
	"io"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	login1        = "org.freedesktop.login1"
	login1Path    = dbus.ObjectPath("/org/freedesktop/login1")
	login1Manager = login1 + ".Manager"
)

// Login1 is a scripted logind. At first it behaves like v252 with a limit of 5 s.
type Login1 struct {
	object   *object
	watching sync.WaitGroup // one goroutine for each lock

	mu         sync.Mutex
	readers    []*os.File        // the read ends of all locks
	limit      uint64            // InhibitDelayMaxUSec
	preparing  bool              // PreparingForShutdown
	kind       string            // "": a logind before v257, without metadata
	refusals   []Refusal         // of the next calls of Inhibit
	delays     []chan struct{}   // of the next calls of Inhibit: each waits until its channel is closed
	locks      []*Lock           // all that were granted
	hidden     bool              // ListInhibitors returns an empty list
	calls      map[string]int    // by method
	afterReply map[string]func() // by property: called once, after the next reply
}

// Refusal is an error reply: the D-Bus name, such as org.freedesktop.DBus.Error.AccessDenied, and the
// text.
type Refusal struct{ Name, Text string }

// Lock is a granted inhibitor lock.
type Lock struct {
	// What, Who, Why and Mode are the arguments of Inhibit.
	What, Who, Why, Mode string

	// Released is closed when the last copy of the lock is closed.
	Released <-chan struct{}
}

// inhibitor is an entry of ListInhibitors, with the fields in the order of the reply.
type inhibitor struct {
	// UID and PID are of the process that called Inhibit.
	What, Who, Why, Mode string
	UID, PID             uint32
}

// StartLogin1 starts a Login1 that owns logind's bus name until the test ends. A [Broker] has one.
func StartLogin1(t testing.TB, address string) *Login1 {
	t.Helper()
	l, err := newLogin1(address)
	must(t, err)
	t.Cleanup(func() {
		l.Close()
		l.stopWatching()
	})
	return l
}

// newLogin1 returns a logind with its default limit of 5 s, which owns logind's name on the bus.
func newLogin1(address string) (l *Login1, err error) {
	l = &Login1{limit: uint64(5 * time.Second / time.Microsecond), afterReply: map[string]func(){}, calls: map[string]int{}}
	l.object, err = newObject(address, login1, l.answer)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// stopWatching closes the read ends of all locks, which ends the goroutines of those that were not released. Call it after
// Close: no Inhibit call adds a lock then.
func (l *Login1) stopWatching() {
	l.mu.Lock()
	for _, reader := range l.readers {
		_ = reader.Close() // it may be closed already
	}
	l.mu.Unlock()
	l.watching.Wait()
}

// Close gives up the bus name. Locks stay held, as when logind is killed.
func (l *Login1) Close() { l.object.close() }

// Owner returns the unique bus name of this logind.
func (l *Login1) Owner() string { return l.object.conn.Names()[0] }

// answer answers a call, and counts it for Calls.
func (l *Login1) answer(o *object, call *dbus.Message) {
	l.mu.Lock()
	l.calls[member(call)]++
	l.mu.Unlock()
	switch member(call) {
	case "Get":
		l.get(o, call)
	case "Inhibit":
		l.inhibit(o, call)
	case "ListInhibitors":
		l.list(o, call)
	default:
		o.refuse(call, "org.freedesktop.DBus.Error.UnknownMethod", "no such method")
	}
}

// get answers Get, which reads a property, and then calls the function of AfterReply for that property, if one is set.
func (l *Login1) get(o *object, call *dbus.Message) {
	l.mu.Lock()
	values := map[string]any{"InhibitDelayMaxUSec": l.limit, "PreparingForShutdown": l.preparing}
	if l.kind != "" {
		values["PreparingForShutdownWithMetadata"] = map[string]dbus.Variant{"preparing": dbus.MakeVariant(l.preparing), "type": dbus.MakeVariant(l.kind)}
	}
	name, _ := call.Body[1].(string)
	afterReply := l.afterReply[name]
	delete(l.afterReply, name)
	l.mu.Unlock()
	if value, known := values[name]; known {
		o.reply(call, dbus.MakeVariant(value))
	} else {
		o.refuse(call, "org.freedesktop.DBus.Error.UnknownProperty", "no property "+name)
	}
	if afterReply != nil {
		afterReply()
	}
}

// inhibit answers Inhibit, with a lock or with an error.
func (l *Login1) inhibit(o *object, call *dbus.Message) {
	mayReply, refusal := l.nextInhibit()
	if mayReply != nil {
		<-mayReply
	}
	if refusal != nil {
		o.refuse(call, refusal.Name, refusal.Text)
		return
	}
	argument := func(i int) string { text, _ := call.Body[i].(string); return text }
	file, err := l.grant(&Lock{What: argument(0), Who: argument(1), Why: argument(2), Mode: argument(3)})
	if err != nil {
		o.refuse(call, "org.freedesktop.DBus.Error.Failed", err.Error())
		return
	}
	o.reply(call, dbus.UnixFD(file.Fd()))
	_ = file.Close() // the bus has a copy
}

// grant adds a lock to those that were granted, and returns its file, the write end of a pipe. The lock is released when
// the read end reports the end of the file: then the last copy of the write end is closed.
func (l *Login1) grant(lock *Lock) (*os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	released := make(chan struct{})
	lock.Released = released
	start(&l.watching, func() {
		_, _ = io.Copy(io.Discard, reader) // ends when the last writer has closed
		_ = reader.Close()                 // nothing was written to it
		close(released)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers, l.locks = append(l.readers, reader), append(l.locks, lock)
	return writer, nil
}

// nextInhibit returns what the next call of Inhibit has to do: it waits until mayReply is closed, unless that is nil, and then
// fails with refusal, unless that is nil. A test prepares both. Without a test's refusal, the call fails during a shutdown.
func (l *Login1) nextInhibit() (mayReply chan struct{}, refusal *Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.delays) > 0 {
		mayReply, l.delays = l.delays[0], l.delays[1:]
	}
	switch {
	case len(l.refusals) > 0:
		refusal, l.refusals = &l.refusals[0], l.refusals[1:]
	case l.preparing: // a real logind refuses too
		refusal = &Refusal{Name: login1 + ".OperationInProgress", Text: "The operation inhibition has been requested for is already running"}
	}
	return mayReply, refusal
}

// list answers ListInhibitors.
func (l *Login1) list(o *object, call *dbus.Message) {
	held := l.Held()
	rows := make([]inhibitor, 0, len(held))
	for _, lock := range held {
		rows = append(rows, inhibitor{What: lock.What, Who: lock.Who, Why: lock.Why, Mode: lock.Mode, UID: uint32(os.Getuid()), PID: uint32(os.Getpid())})
	}
	l.mu.Lock()
	hidden := l.hidden
	l.mu.Unlock()
	if hidden {
		rows = rows[:0]
	}
	o.reply(call, rows)
}

// SetLimit sets InhibitDelayMaxUSec. [Unlimited] means no limit.
func (l *Login1) SetLimit(limit time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = uint64(limit / time.Microsecond)
	if limit == Unlimited {
		l.limit = ^uint64(0)
	}
}

// Unlimited is the limit of InhibitDelayMaxSec=infinity.
const Unlimited = time.Duration(math.MaxInt64)

// SetKind makes this a logind of v257, which says in its metadata what kind of shutdown it prepares, such as "power-off".
func (l *Login1) SetKind(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kind = kind
}

// SetPreparing sets PreparingForShutdown without a signal.
func (l *Login1) SetPreparing(preparing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.preparing = preparing
}

// Prepare sets PreparingForShutdown and sends PrepareForShutdown; after [Login1.SetKind], it first
// sends PrepareForShutdownWithMetadata.
func (l *Login1) Prepare(active bool) {
	l.SetPreparing(active)
	l.mu.Lock()
	kind := l.kind
	l.mu.Unlock()
	if kind != "" {
		l.Emit("PrepareForShutdownWithMetadata", active, map[string]dbus.Variant{"type": dbus.MakeVariant(kind)})
	}
	l.Emit("PrepareForShutdown", active)
}

// Emit broadcasts a signal of logind.
func (l *Login1) Emit(name string, body ...any) {
	_ = l.object.conn.Emit(login1Path, login1Manager+"."+name, body...) // fails only on a closed connection
}

// AfterReply makes the next reply about a property be followed by a call of f. If f sends signals, they arrive right
// after the reply.
func (l *Login1) AfterReply(property string, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.afterReply[property] = f
}

// Refuse makes the next calls of Inhibit fail, one for each refusal.
func (l *Login1) Refuse(refusals ...Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusals = append(l.refusals, refusals...)
}

// Delay makes the next call of Inhibit wait until sendReply is called.
func (l *Login1) Delay() (sendReply func()) {
	mayReply := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delays = append(l.delays, mayReply)
	return sync.OnceFunc(func() { close(mayReply) })
}

// HideLocks makes ListInhibitors return an empty list, as if logind had lost the locks.
func (l *Login1) HideLocks() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hidden = true
}

// Calls returns the number of calls of a method, such as Inhibit.
func (l *Login1) Calls(method string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[method]
}

// Locks returns all granted locks, including released ones.
func (l *Login1) Locks() []*Lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*Lock(nil), l.locks...)
}

// Held returns the locks that are not released.
func (l *Login1) Held() []*Lock {
	var held []*Lock
	for _, lock := range l.Locks() {
		select {
		case <-lock.Released:
		default:
			held = append(held, lock)
		}
	}
	return held
}
