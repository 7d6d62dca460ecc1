package units

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindhost"
)

const kubeletUnit = "kubelet.service"

// systemd1 is a fake systemd with one unit, on a bus of the test. It records the calls that would change
// something.
type systemd1 struct {
	conn *dbus.Conn

	mu          sync.Mutex
	loadState   string   // of the unit: not-found, or anything else
	activeState string   // of the unit
	hangs       bool     // the unit stops only when it is killed
	calls       []string // such as "reload" and "stop kubelet.service", in order
	beforeStop  func()   // called when StopUnit arrives, before the unit stops
}

// set calls a function that sets fields, under the lock.
func (s *systemd1) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// record records a call.
func (s *systemd1) record(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

// recordedCalls returns the recorded calls.
func (s *systemd1) recordedCalls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Subscribe does nothing: the fake sends its signals to everybody.
func (s *systemd1) Subscribe() *dbus.Error { return nil }

// Reload records the call.
func (s *systemd1) Reload() *dbus.Error { s.record("reload"); return nil }

// ListUnitsByNames returns the unit with its states.
func (s *systemd1) ListUnitsByNames(names []string) ([]systemd.UnitStatus, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []systemd.UnitStatus{{Name: names[0], LoadState: s.loadState, ActiveState: s.activeState, Path: "/unit", JobPath: "/"}}, nil
}

// StopUnit calls beforeStop, records the call, and stops the unit unless it hangs.
func (s *systemd1) StopUnit(unit, _ string) (dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	beforeStop, hangs := s.beforeStop, s.hangs
	s.mu.Unlock()
	if beforeStop != nil {
		beforeStop()
	}
	s.record("stop " + unit)
	if !hangs {
		s.end(unit, "inactive")
	}
	return "/job/1", nil
}

// StartUnit records the call and starts the unit. There is no gone.service.
func (s *systemd1) StartUnit(unit, _ string) (dbus.ObjectPath, *dbus.Error) {
	if unit == "gone.service" {
		return "", dbus.NewError("org.freedesktop.systemd1.NoSuchUnit", []any{"Unit gone.service not found."})
	}
	s.record("start " + unit)
	s.end(unit, "active")
	return "/job/1", nil
}

// KillUnit records which processes are to be killed, and ends the unit.
func (s *systemd1) KillUnit(unit, who string, _ int32) *dbus.Error {
	s.record("kill " + who)
	s.end(unit, "failed")
	return nil
}

// end gives the unit its new state, and signals the end of its job a moment later, as systemd does.
func (s *systemd1) end(unit, state string) {
	s.mu.Lock()
	s.activeState = state
	s.mu.Unlock()
	time.AfterFunc(20*time.Millisecond, func() { // after the reply to the call, which has the name of the job
		_ = s.conn.Emit("/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager.JobRemoved", uint32(1), dbus.ObjectPath("/job/1"), unit, "done")
	})
}

// startSystemd returns a fake systemd whose kubelet.service runs. Each call of newKeeper makes a new Keeper with the same
// runDir, as a restarted agent does.
func startSystemd(t *testing.T) (s *systemd1, runDir string, newKeeper func() *Keeper) {
	t.Helper()
	const anySocket = ""
	bus := logindhost.StartBus(t, anySocket)
	s = &systemd1{conn: bus.Connect(), activeState: "active"}
	const manager = "org.freedesktop.systemd1.Manager"
	require.NoError(t, s.conn.Export(s, "/org/freedesktop/systemd1", manager))
	_, err := s.conn.RequestName("org.freedesktop.systemd1", dbus.NameFlagDoNotQueue)
	require.NoError(t, err)
	runDir = t.TempDir()
	return s, runDir, func() *Keeper {
		k, err := New(runDir, []string{kubeletUnit})
		require.NoError(t, err)
		k.dial = func(ctx context.Context) (*dbus.Conn, error) { return dbus.Connect(bus.Address, dbus.WithContext(ctx)) }
		return k
	}
}

// bounded returns a context with a timeout. Stop kills a unit that hangs when half of the timeout is over.
func bounded(t *testing.T, timeout time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// One agent stops kubelet.service, and the next agent starts it again. The first agent writes two files before the unit
// stops, because an agent may die at any time: the one by which the next agent knows the unit, and a drop-in whose false
// condition prevents systemd from starting the unit. The next agent removes both.
func TestAUnitIsStoppedAndStartedAgainByTheNextAgent(t *testing.T) {
	s, runDir, newKeeper := startSystemd(t)
	first := newKeeper()
	s.set(func() {
		s.beforeStop = func() {
			assert.FileExists(t, filepath.Join(runDir, File))
			text, err := os.ReadFile(first.dropIn(kubeletUnit))
			assert.NoError(t, err)
			assert.Contains(t, string(text), "\nConditionPathExists=!/run/systemd/system/kubelet.service.d/50-kubegrace-node-stopped.conf\n", "the path as systemd sees it, even if the agent has the host's /run in another place")
		}
	})

	// The first agent stops the unit, and once more, as an agent does that was restarted in the drain.
	require.NoError(t, first.Stop(bounded(t, 10*time.Second)))
	require.NoError(t, first.Stop(bounded(t, 10*time.Second)))
	require.Equal(t, []string{"reload", "stop kubelet.service", "reload"}, s.recordedCalls(), "systemd reads the drop-in each time")

	// The next agent starts it.
	next := newKeeper()
	require.Equal(t, &StoppedUnits{Units: []string{kubeletUnit}}, next.Stopped())
	require.NoError(t, next.Start(bounded(t, 10*time.Second)))
	require.Equal(t, []string{"reload", "start kubelet.service"}, s.recordedCalls()[3:], "systemd forgets the drop-in")
	require.Nil(t, next.Stopped())
	require.NoFileExists(t, next.dropIn(kubeletUnit))
	require.NoFileExists(t, filepath.Join(runDir, File))
}

// CheckStopped names a unit that runs, be it that Stop was not called or that somebody has started the unit since.
func TestCheckStoppedNamesTheUnitsThatRun(t *testing.T) {
	s, runDir, newKeeper := startSystemd(t)
	k := newKeeper()
	require.EqualError(t, k.CheckStopped(bounded(t, 10*time.Second)), "not stopped: kubelet.service")
	require.NoError(t, k.Stop(bounded(t, 10*time.Second)))
	require.NoError(t, k.CheckStopped(bounded(t, 10*time.Second)))
	s.set(func() { s.activeState = "activating" })
	require.EqualError(t, k.CheckStopped(bounded(t, 10*time.Second)), "not stopped: kubelet.service")

	withoutUnits, err := New(runDir, nil)
	require.NoError(t, err)
	require.NoError(t, withoutUnits.CheckStopped(t.Context()), "systemd is not asked")
}

// A unit that did not run before the drain is neither stopped nor started. The two reloads are those of Stop and Start,
// which write and remove the drop-in.
func TestAUnitThatDidNotRunStaysStopped(t *testing.T) {
	s, _, newKeeper := startSystemd(t)
	s.set(func() { s.activeState = "inactive" })
	k := newKeeper()
	require.NoError(t, k.Stop(bounded(t, 10*time.Second)))
	require.NoError(t, k.Start(bounded(t, 10*time.Second)))
	require.Equal(t, []string{"reload", "reload"}, s.recordedCalls(), "no stop and no start")
}

// A unit does not stop when it is told to. Its main process is killed when half of the timeout of 2 s is over, and Stop
// succeeds.
func TestAUnitThatHangsIsKilledInTime(t *testing.T) {
	s, _, newKeeper := startSystemd(t)
	s.set(func() { s.hangs = true })
	began := time.Now()
	require.NoError(t, newKeeper().Stop(bounded(t, 2*time.Second)))
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	require.Equal(t, []string{"reload", "stop kubelet.service", "kill main"}, s.recordedCalls())
}

// The mark that the node is drained is stored with the stopped units, so that the next agent has it too. When the mark
// is removed, the stopped units stay stored: they must still be started.
func TestDrainedUnitsStayStopped(t *testing.T) {
	_, _, newKeeper := startSystemd(t)
	k := newKeeper()
	require.NoError(t, k.SetNodeDrained(true))
	require.NoError(t, k.Stop(bounded(t, 10*time.Second)))
	require.True(t, newKeeper().IsNodeDrained())
	require.NoError(t, k.SetNodeDrained(false))
	require.Equal(t, &StoppedUnits{Units: []string{kubeletUnit}}, newKeeper().Stopped())
}

// A drain prevents kubelet.service from starting, although it did not run. The agent without --stop-unit that follows, or
// uninstall, lets it start again.
func TestALaterAgentWithoutUnitsLetsThemStart(t *testing.T) {
	s, runDir, newKeeper := startSystemd(t)
	s.set(func() { s.activeState = "failed" })
	first := newKeeper()
	require.NoError(t, first.SetNodeDrained(true))
	require.NoError(t, first.Stop(bounded(t, 10*time.Second)))
	require.FileExists(t, first.dropIn(kubeletUnit))
	next, err := New(runDir, nil)
	require.NoError(t, err)
	next.dial = first.dial
	require.NoError(t, next.Start(bounded(t, 10*time.Second)))
	require.NoFileExists(t, first.dropIn(kubeletUnit))
	require.Equal(t, []string{"reload", "reload"}, s.recordedCalls())
}

// Two units were stopped, and one was removed from the machine since. The other is started, and nothing is left to do.
func TestAStoppedUnitThatIsGoneIsNotStarted(t *testing.T) {
	s, _, newKeeper := startSystemd(t)
	k := newKeeper()
	require.NoError(t, k.store(&StoppedUnits{Units: []string{"gone.service", kubeletUnit}}))
	require.NoError(t, k.Start(bounded(t, 10*time.Second)))
	require.Equal(t, []string{"reload", "start " + kubeletUnit}, s.recordedCalls())
	require.Nil(t, newKeeper().Stopped())
}

// systemd does not know a unit, because its name is misspelt. CheckExist returns an error, because Stop would stop nothing.
func TestAUnitThatIsNotThere(t *testing.T) {
	s, _, newKeeper := startSystemd(t)
	require.NoError(t, newKeeper().CheckExist(t.Context()))
	s.set(func() { s.loadState = "not-found" })
	require.ErrorContains(t, newKeeper().CheckExist(t.Context()), "kubelet.service: systemd has no such unit")
}
