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

// systemd1 is a systemd with one unit on a bus of the test.
type systemd1 struct {
	conn *dbus.Conn

	mu    sync.Mutex
	load  string // loaded, or not-found
	state string
	hangs bool     // a stop ends only when the unit is killed
	calls []string // that change something
	seen  func()   // called before a stop
}

// script changes what the systemd does.
func (s *systemd1) script(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *systemd1) called(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *systemd1) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *systemd1) Subscribe() *dbus.Error { return nil }
func (s *systemd1) Reload() *dbus.Error    { s.called("reload"); return nil }

func (s *systemd1) ListUnitsByNames(names []string) ([]systemd.UnitStatus, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []systemd.UnitStatus{{Name: names[0], LoadState: s.load, ActiveState: s.state, Path: "/unit", JobPath: "/"}}, nil
}

func (s *systemd1) StopUnit(unit, _ string) (dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	seen, hangs := s.seen, s.hangs
	s.mu.Unlock()
	if seen != nil {
		seen()
	}
	s.called("stop " + unit)
	if !hangs {
		s.end(unit, "inactive")
	}
	return "/job/1", nil
}

func (s *systemd1) StartUnit(unit, _ string) (dbus.ObjectPath, *dbus.Error) {
	s.called("start " + unit)
	s.end(unit, "active")
	return "/job/1", nil
}

func (s *systemd1) KillUnit(unit, who string, _ int32) *dbus.Error {
	s.called("kill " + who)
	s.end(unit, "failed")
	return nil
}

// end ends the job of a unit.
func (s *systemd1) end(unit, state string) {
	s.mu.Lock()
	s.state = state
	s.mu.Unlock()
	time.AfterFunc(20*time.Millisecond, func() { // after the reply
		_ = s.conn.Emit("/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager.JobRemoved", uint32(1), dbus.ObjectPath("/job/1"), unit, "done")
	})
}

// start returns a systemd whose kubelet runs, and a function that makes a Keeper of it.
func start(t *testing.T) (s *systemd1, runDir string, keeper func() *Keeper) {
	t.Helper()
	bus := logindhost.StartBus(t, "")
	s = &systemd1{conn: bus.Connect(), state: "active"}
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

func bounded(t *testing.T, timeout time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// The record and the drop-in are on the disk before the unit is stopped, the next agent knows, and
// starts it again.
func TestAUnitIsStoppedAndStartedAgainByTheNextAgent(t *testing.T) {
	s, runDir, keeper := start(t)
	first := keeper()
	s.script(func() {
		s.seen = func() {
			assert.FileExists(t, filepath.Join(runDir, File))
			text, err := os.ReadFile(first.dropIn(kubeletUnit))
			assert.NoError(t, err)
			assert.Contains(t, string(text), "\nConditionPathExists=!/run/systemd/system/kubelet.service.d/50-kubegrace-node-stopped.conf\n", "where systemd sees it, also if the agent has the host's /run elsewhere")
		}
	})
	require.NoError(t, first.Stop(bounded(t, 10*time.Second)))
	require.NoError(t, first.Stop(bounded(t, 10*time.Second)), "again, as after a restart in the drain")
	require.Equal(t, []string{"reload", "stop " + kubeletUnit, "reload"}, s.all())

	next := keeper()
	require.Equal(t, &Record{Units: []string{kubeletUnit}}, next.Stopped())
	require.NoError(t, next.Start(bounded(t, 10*time.Second)))
	require.Equal(t, "start "+kubeletUnit, s.all()[4])
	require.Nil(t, next.Stopped())
	require.NoFileExists(t, next.dropIn(kubeletUnit))
	require.NoFileExists(t, filepath.Join(runDir, File))
	require.Nil(t, keeper().Stopped())
}

// A unit that did not run is not started afterwards.
func TestAUnitThatDidNotRunStaysStopped(t *testing.T) {
	s, _, keeper := start(t)
	s.script(func() { s.state = "inactive" })
	k := keeper()
	require.NoError(t, k.Stop(bounded(t, 10*time.Second)))
	require.NoError(t, k.Start(bounded(t, 10*time.Second)))
	require.Equal(t, []string{"reload", "reload"}, s.all())
}

func TestAUnitThatHangsIsKilledInTime(t *testing.T) {
	s, _, keeper := start(t)
	s.script(func() { s.hangs = true })
	require.NoError(t, keeper().Stop(bounded(t, 2*time.Second)))
	require.Equal(t, "kill main", s.all()[2])
}

// A drain outlives a shutdown that is called off, until it is taken back.
func TestDrainedUnitsStayStopped(t *testing.T) {
	_, _, keeper := start(t)
	k := keeper()
	require.NoError(t, k.SetDrained(true))
	require.NoError(t, k.Stop(bounded(t, 10*time.Second)))
	require.True(t, keeper().Drained())
	require.NoError(t, k.SetDrained(false))
	require.Equal(t, &Record{Units: []string{kubeletUnit}}, keeper().Stopped())
}

// A unit that systemd does not know, as after a slip of the pen, is told of: it would never be stopped.
func TestAUnitThatIsNotThere(t *testing.T) {
	s, _, keeper := start(t)
	require.NoError(t, keeper().Check(t.Context()))
	s.script(func() { s.load = "not-found" })
	require.ErrorContains(t, keeper().Check(t.Context()), "kubelet.service: systemd has no such unit")
}
