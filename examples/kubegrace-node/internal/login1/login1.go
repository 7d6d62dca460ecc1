// Package login1 asks systemd-logind for its limit and its locks. It changes nothing. Errors say that the bus, or
// logind on it, does not answer. The tests of packages command and inspect cover it, with a fake logind on a real
// bus.
package login1

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/internal/logindconf"
)

const (
	busName          = "org.freedesktop.login1"
	managerInterface = busName + ".Manager"
)

// ErrNotRunning is returned while systemd-logind does not run: nobody owns its name on the bus.
var ErrNotRunning = errors.New("systemd-logind does not run")

// Lock is an inhibitor lock for shutdowns, as logind lists it.
type Lock struct {
	What string `json:"what"`
	Who  string `json:"who"`
	Why  string `json:"why"`
	Mode string `json:"mode"`
	UID  uint32 `json:"uid"`
	PID  uint32 `json:"pid"`
}

// State is what logind answers.
type State struct {
	// LimitSeconds is how long locks can delay a shutdown (InhibitDelayMaxSec). An infinite limit is given as 292 years,
	// the longest duration of Go.
	LimitSeconds float64 `json:"limitSeconds"`
	// Preparing says that a shutdown is pending: logind has announced it and waits for delay locks.
	Preparing bool `json:"preparing"`
	// Locks are the locks for shutdowns, sorted by holder and process ID.
	Locks []Lock `json:"locks"`
}

// Limit returns LimitSeconds; [logindconf.Unlimited] means that there is no limit.
func (s State) Limit() time.Duration { return duration.Of(s.LimitSeconds) }

// Look asks logind on the bus at an address, "" for the system bus. It never starts logind, which a call to a bus
// name otherwise does.
func Look(ctx context.Context, address string) (s State, err error) {
	connect := dbus.ConnectSystemBus
	if address != "" {
		connect = func(opts ...dbus.ConnOption) (*dbus.Conn, error) { return dbus.Connect(address, opts...) }
	}
	conn, err := connect(dbus.WithContext(ctx))
	if err != nil {
		return s, fmt.Errorf("failed to reach the system bus: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var microseconds uint64
	var all []Lock
	err = cmp.Or( // the first error
		getProperty(ctx, conn, "InhibitDelayMaxUSec", &microseconds),
		getProperty(ctx, conn, "PreparingForShutdown", &s.Preparing),
		call(ctx, conn, managerInterface+".ListInhibitors", &all),
	)
	if errors.Is(err, ErrNotRunning) {
		return State{}, ErrNotRunning
	}
	if err != nil {
		return State{}, fmt.Errorf("failed to ask systemd-logind: %w", err)
	}
	s.LimitSeconds = logindconf.FromMicroseconds(microseconds).Seconds()
	isForOtherThings := func(l Lock) bool { return !slices.Contains(strings.Split(l.What, ":"), "shutdown") } // such as sleep
	s.Locks = slices.DeleteFunc(all, isForOtherThings)
	slices.SortFunc(s.Locks, func(a, b Lock) int { return cmp.Or(cmp.Compare(a.Who, b.Who), cmp.Compare(a.PID, b.PID)) }) // logind has no order
	return s, nil
}

// getProperty stores the value of a property of logind in value, a pointer.
func getProperty(ctx context.Context, conn *dbus.Conn, property string, value any) error {
	var variant dbus.Variant
	if err := call(ctx, conn, "org.freedesktop.DBus.Properties.Get", &variant, managerInterface, property); err != nil {
		return err
	}
	return variant.Store(value)
}

// call calls a method of logind and stores the answer in answer, a pointer.
func call(ctx context.Context, conn *dbus.Conn, method string, answer any, args ...any) error {
	err := conn.Object(busName, "/org/freedesktop/login1").CallWithContext(ctx, method, dbus.FlagNoAutoStart, args...).Store(answer)
	var refused dbus.Error
	noOwner := []string{"org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.ServiceUnknown"}
	if errors.As(err, &refused) && slices.Contains(noOwner, refused.Name) {
		return ErrNotRunning
	}
	return err
}

// kubegraceWhy is the reason that package logind gives for its locks by default.
const kubegraceWhy = "Pods need time to end before the node shuts down"

// IsKubelets reports whether a lock belongs to a kubelet.
func (l Lock) IsKubelets() bool { return l.Mode == "delay" && l.Who == "kubelet" }

// IsKubegraces reports whether a lock belongs to an agent that uses kubegrace. Other agents than kubegrace-node may call
// themselves anything, so the default reason counts too.
func (l Lock) IsKubegraces() bool {
	hasName := l.Who == "kubegrace" || l.Who == "kubegrace-node"
	return l.Mode == "delay" && !l.IsKubelets() && (hasName || l.Why == kubegraceWhy)
}
