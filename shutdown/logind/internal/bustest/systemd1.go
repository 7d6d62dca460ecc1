//go:build linux

package bustest

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

// Systemd1 stands for the systemd of the host. Its unit of logind has no reload,
// as on Debian 12.
type Systemd1 struct {
	// Started gives the unit of each StartUnit, at the moment it is asked for.
	Started chan string

	object *object

	mu     sync.Mutex
	hangUp func()   // what a SIGHUP does; nil: KillUnit fails
	result string   // of reload jobs; "": there is no reload
	broken *Refusal // of StartUnit; nil: it works
	killed []string // the targets of KillUnit
}

// StartSystemd1 owns systemd's name on the bus until the test ends. hangUp is
// what a SIGHUP to logind, or a reload of its unit, does; nil if neither works.
func StartSystemd1(t testing.TB, address string, hangUp func()) *Systemd1 {
	t.Helper()
	s := &Systemd1{Started: make(chan string, 16), hangUp: hangUp}
	s.object = serve(t, address, systemd1, s.answer)
	return s
}

// ReloadResult gives logind's unit a reload whose jobs end with result.
func (s *Systemd1) ReloadResult(result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result = result
}

// BreakStart lets StartUnit fail, which cancels a shutdown; nil mends it.
func (s *Systemd1) BreakStart(refusal *Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = refusal
}

// Killed are the targets ("main", "all") of the calls of KillUnit.
func (s *Systemd1) Killed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.killed...)
}

func (s *Systemd1) answer(o *object, call *dbus.Message) {
	switch member(call) {
	case "Get": // a unit's LoadState, before logind shuts down
		o.reply(call, dbus.MakeVariant("loaded"))
	case "Subscribe":
		o.reply(call)
	case "StartUnit":
		s.startUnit(o, call)
	case "ReloadUnit":
		s.reloadUnit(o, call)
	case "KillUnit":
		s.killUnit(o, call)
	default:
		o.refuse(call, "org.freedesktop.DBus.Error.UnknownMethod", "no such method")
	}
}

func (s *Systemd1) startUnit(o *object, call *dbus.Message) {
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	unit, _ := call.Body[0].(string)
	s.Started <- unit
	if broken != nil {
		o.refuse(call, broken.Name, broken.Text)
		return
	}
	o.reply(call, job)
}

// EndJob ends the job of a StartUnit. On a host that goes down nobody sees that;
// for logind the shutdown is over then, and it says so.
func (s *Systemd1) EndJob(unit string) { s.jobRemoved(unit, "done") }

func (s *Systemd1) jobRemoved(unit, result string) {
	_ = s.object.conn.Emit(systemd1Path, systemd1Manager+".JobRemoved", uint32(1), job, unit, result) // fails only on a closed connection
}

func (s *Systemd1) reloadUnit(o *object, call *dbus.Message) {
	s.mu.Lock()
	result, hangUp := s.result, s.hangUp
	s.mu.Unlock()
	if result == "" {
		o.refuse(call, systemd1+".JobTypeNotApplicable", "Job type reload is not applicable for unit systemd-logind.service.")
		return
	}
	if result == "done" {
		hangUp()
	}
	o.reply(call, job)
	s.jobRemoved("systemd-logind.service", result)
}

func (s *Systemd1) killUnit(o *object, call *dbus.Message) {
	target, _ := call.Body[1].(string)
	number, _ := call.Body[2].(int32)
	s.mu.Lock()
	s.killed = append(s.killed, target)
	hangUp := s.hangUp
	s.mu.Unlock()
	if hangUp == nil || syscall.Signal(number) != syscall.SIGHUP {
		o.refuse(call, systemd1+".NoSuchUnit", "Unit systemd-logind.service not loaded.")
		return
	}
	hangUp()
	o.reply(call)
}
