package units

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/shutdown/logind/logindtest"
)

const kubeletUnit = "kubelet.service"

// systemd1 is a systemd with one unit on a bus of the test.
type systemd1 struct {
	conn *dbus.Conn

	mu    sync.Mutex
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

func (s *systemd1) Get(_, _ string) (dbus.Variant, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return dbus.MakeVariant(s.state), nil
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
func start(t *testing.T) (s *systemd1, stateDir string, keeper func() *Keeper) {
	t.Helper()
	bus := logindhost.StartBus(t, "")
	s = &systemd1{conn: bus.Connect(), state: "active"}
	const manager = "org.freedesktop.systemd1.Manager"
	require.NoError(t, s.conn.Export(s, "/org/freedesktop/systemd1", manager))
	require.NoError(t, s.conn.ExportSubtreeMethodTable(map[string]any{"Get": s.Get}, "/org/freedesktop/systemd1/unit", "org.freedesktop.DBus.Properties"))
	_, err := s.conn.RequestName("org.freedesktop.systemd1", dbus.NameFlagDoNotQueue)
	require.NoError(t, err)
	stateDir, runtimeDir := t.TempDir(), t.TempDir()
	return s, stateDir, func() *Keeper {
		k := &Keeper{
			stateDir: stateDir, runtimeDir: runtimeDir, boot: "boot", units: []string{kubeletUnit},
			dial: func(ctx context.Context) (*dbus.Conn, error) { return dbus.Connect(bus.Address, dbus.WithContext(ctx)) },
		}
		require.NoError(t, k.load())
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
	s, stateDir, keeper := start(t)
	first := keeper()
	s.script(func() {
		s.seen = func() {
			assert.FileExists(t, filepath.Join(stateDir, File))
			assert.FileExists(t, first.dropIn(kubeletUnit))
		}
	})
	require.NoError(t, first.Stop(bounded(t, 10*time.Second), Shutdown))
	require.NoError(t, first.Stop(bounded(t, 10*time.Second), Shutdown), "again, as after a restart in the drain")
	require.Equal(t, []string{"reload", "stop " + kubeletUnit, "reload"}, s.all())

	next := keeper()
	require.Equal(t, &Record{Boot: "boot", Reason: Shutdown, Units: []string{kubeletUnit}}, next.Stopped())
	require.NoError(t, next.Start(bounded(t, 10*time.Second)))
	require.Equal(t, "start "+kubeletUnit, s.all()[4])
	require.Nil(t, next.Stopped())
	require.NoFileExists(t, next.dropIn(kubeletUnit))
	require.NoFileExists(t, filepath.Join(stateDir, File))
	require.Nil(t, keeper().Stopped())
}

// A unit that did not run is not started afterwards.
func TestAUnitThatDidNotRunStaysStopped(t *testing.T) {
	s, _, keeper := start(t)
	s.script(func() { s.state = "inactive" })
	k := keeper()
	require.NoError(t, k.Stop(bounded(t, 10*time.Second), Shutdown))
	require.NoError(t, k.Start(bounded(t, 10*time.Second)))
	require.Equal(t, []string{"reload", "reload"}, s.all())
}

func TestAUnitThatHangsIsKilledInTime(t *testing.T) {
	s, _, keeper := start(t)
	s.script(func() { s.hangs = true })
	require.NoError(t, keeper().Stop(bounded(t, 2*time.Second), Shutdown))
	require.Equal(t, "kill main", s.all()[2])
}

// A full disk keeps nobody from stopping the unit; the drop-in tells the next agent.
func TestWithoutAStateFolderTheDropInCounts(t *testing.T) {
	s, stateDir, keeper := start(t)
	k := keeper()
	require.NoError(t, os.RemoveAll(stateDir))
	require.Error(t, k.Stop(bounded(t, 10*time.Second), Shutdown))
	require.Contains(t, s.all(), "stop "+kubeletUnit)
	require.Equal(t, []string{kubeletUnit}, keeper().Stopped().Units)
}

// A drain outlives a shutdown that is called off, until it is taken back; a boot ends both.
func TestReasons(t *testing.T) {
	_, _, keeper := start(t)
	k := keeper()
	require.NoError(t, k.Reserve())
	require.NoError(t, k.Stop(bounded(t, 10*time.Second), Shutdown))
	require.Equal(t, Drain, keeper().Stopped().Reason)
	require.NoError(t, k.Release())
	require.Equal(t, &Record{Boot: "boot", Reason: Shutdown, Units: []string{kubeletUnit}}, keeper().Stopped())
	require.NoError(t, os.RemoveAll(k.runtimeDir))
	k.boot = "another"
	require.NoError(t, k.store(&Record{Boot: "older", Reason: Drain}))
	require.Nil(t, keeper().Stopped())
}

func TestLogindIsAsked(t *testing.T) {
	bus := logindhost.StartBus(t, "")
	k := &Keeper{dial: func(ctx context.Context) (*dbus.Conn, error) { return dbus.Connect(bus.Address, dbus.WithContext(ctx)) }}
	goesDown, err := k.HostGoesDown(t.Context())
	require.NoError(t, err, "there is no logind")
	require.False(t, goesDown)
	host := logindtest.StartLogin1(t, bus.Address)
	host.SetPreparing(true)
	goesDown, err = k.HostGoesDown(t.Context())
	require.NoError(t, err)
	require.True(t, goesDown)
	require.NoError(t, k.CheckKubelet(t.Context()))
	object := bus.Connect().Object("org.freedesktop.login1", dbus.ObjectPath("/org/freedesktop/login1"))
	host.SetPreparing(false)
	require.NoError(t, object.Call("org.freedesktop.login1.Manager.Inhibit", 0, "shutdown", "kubelet", "pods", "delay").Err)
	require.ErrorIs(t, k.CheckKubelet(t.Context()), ErrKubeletHolds)
}

// A unit that systemd does not know, as after a slip of the pen, is told of: it would never be stopped.
func TestAUnitThatIsNotThere(t *testing.T) {
	s, _, keeper := start(t)
	require.NoError(t, keeper().Check(t.Context()))
	s.script(func() { s.state = "not-found" })
	require.ErrorContains(t, keeper().Check(t.Context()), "kubelet.service: systemd has no such unit")
}
