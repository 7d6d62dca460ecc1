//go:build linux

package logindfake

import (
	"sync"
	"syscall"
	"testing"

	"github.com/godbus/dbus/v5"
)

const (
	systemd1        = "org.freedesktop.systemd1"
	systemd1Path    = dbus.ObjectPath("/org/freedesktop/systemd1")
	systemd1Manager = systemd1 + ".Manager"
	job             = systemd1Path + "/job/1"
)

// Systemd1 is a scripted systemd.
type Systemd1 struct {
	// Started receives the unit of each call of StartUnit.
	Started chan string

	object *object

	mu           sync.Mutex
	hangUp       func()   // called for a SIGHUP to logind; nil: KillUnit fails
	startRefusal *Refusal // the error of StartUnit; nil: it succeeds
	reloads      []string // the targets of KillUnit, which reloads logind
}

// StartSystemd1 starts a fake systemd on the bus at address. It owns systemd's bus name until the test ends.
// hangUp is called when KillUnit sends SIGHUP to logind; nil: KillUnit fails. Tests with a [Broker] use
// Broker.Systemd1 instead.
func StartSystemd1(t testing.TB, address string, hangUp func()) *Systemd1 {
	t.Helper()
	s, err := newSystemd1(address, hangUp)
	must(t, err)
	t.Cleanup(s.object.close)
	return s
}

// newSystemd1 returns a systemd that owns systemd's name on the bus.
func newSystemd1(address string, hangUp func()) (s *Systemd1, err error) {
	s = &Systemd1{Started: make(chan string, 16), hangUp: hangUp}
	s.object, err = newObject(address, systemd1, s.answer)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// OnHangUp sets the function for a SIGHUP to logind. nil: KillUnit fails.
func (s *Systemd1) OnHangUp(hangUp func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangUp = hangUp
}

// RefuseStart makes StartUnit fail with refusal, which cancels a shutdown. nil makes it succeed again.
func (s *Systemd1) RefuseStart(refusal *Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startRefusal = refusal
}

// Reloads returns the target ("main" or "all") of each call of KillUnit, which reloads logind by SIGHUP.
func (s *Systemd1) Reloads() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.reloads...)
}

// answer answers a call of logind.
func (s *Systemd1) answer(o *object, call *dbus.Message) {
	switch member(call) {
	case "Get": // a unit's LoadState, before logind shuts down
		o.reply(call, dbus.MakeVariant("loaded"))
	case "Subscribe":
		o.reply(call)
	case "StartUnit":
		s.startUnit(o, call)
	case "KillUnit":
		s.killUnit(o, call)
	default:
		o.refuse(call, "org.freedesktop.DBus.Error.UnknownMethod", "no such method")
	}
}

// startUnit tells the test of a StartUnit, and then accepts or refuses it, as RefuseStart has set.
func (s *Systemd1) startUnit(o *object, call *dbus.Message) {
	s.mu.Lock()
	refusal := s.startRefusal
	s.mu.Unlock()
	unit, _ := call.Body[0].(string)
	s.Started <- unit
	if refusal != nil {
		o.refuse(call, refusal.Name, refusal.Text)
		return
	}
	o.reply(call, job)
}

// EndJob ends the job of StartUnit, which ends the shutdown for logind. On a host that shuts down,
// nobody sees that.
func (s *Systemd1) EndJob(unit string) {
	_ = s.object.conn.Emit(systemd1Path, systemd1Manager+".JobRemoved", uint32(1), job, unit, "done") // fails only on a closed connection
}

// killUnit records a KillUnit, and calls the function of OnHangUp. It refuses any signal but SIGHUP.
func (s *Systemd1) killUnit(o *object, call *dbus.Message) {
	target, _ := call.Body[1].(string)
	number, _ := call.Body[2].(int32)
	s.mu.Lock()
	s.reloads = append(s.reloads, target)
	hangUp := s.hangUp
	s.mu.Unlock()
	if hangUp == nil || syscall.Signal(number) != syscall.SIGHUP {
		o.refuse(call, systemd1+".NoSuchUnit", "Unit systemd-logind.service not loaded.")
		return
	}
	hangUp()
	o.reply(call)
}
