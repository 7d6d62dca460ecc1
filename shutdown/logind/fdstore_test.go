//go:build linux

package logind_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/shutdown/logind"
)

// agentEnv is the environment variable that makes the test binary an agent, see [TestAgentProcess]. With the value adopts
// the agent calls Adopt first.
const (
	agentEnv = "KUBEGRACE_TEST_AGENT"
	adopts   = "adopts"
)

// TestAgentProcess is no test, but the process of an agent that other tests start and kill. It adopts the stored lock if
// it was told to, and asks for a lock. If it gets one, it closes the adopted lock. It prints what it found: adopted (it has adopted
// a lock), pending (a shutdown is pending), inhibited (Inhibit has succeeded), and fdnames (LISTEN_FDNAMES, the names of the passed
// descriptors; "taken" stands for a lock that this package has taken over). Then it follows commands: again replaces the lock by a
// new one, and release closes it.
func TestAgentProcess(t *testing.T) {
	if os.Getenv(agentEnv) == "" {
		return
	}
	source, err := logind.New(logind.Options{}.With(logind.Times{Verify: time.Hour}))
	require.NoError(t, err)
	var adopted io.Closer
	if os.Getenv(agentEnv) == adopts {
		adopted = source.Adopt()
		require.True(t, source.Adopt() == nil, "each lock is handed out once; not even a nil *lock")
	}
	second, err := logind.New(logind.Options{})
	require.NoError(t, err)
	require.True(t, second.Adopt() == nil, "a second source finds nothing that is stored")
	session, err := source.Connect(t.Context())
	require.NoError(t, err)
	pending, err := session.Pending(t.Context())
	require.NoError(t, err)
	lock, err := session.Inhibit(t.Context())
	isGranted := err == nil
	switch {
	case adopted != nil && isGranted:
		require.NoError(t, adopted.Close())
	case adopted != nil: // Inhibit has failed
		lock = adopted
	}
	fmt.Printf("agent: adopted=%t pending=%t inhibited=%t fdnames=%s\n", adopted != nil, pending != nil, isGranted, os.Getenv("LISTEN_FDNAMES"))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "again":
			next, err := session.Inhibit(t.Context())
			require.NoError(t, err)
			require.NoError(t, lock.Close())
			lock = next
		case "release":
			require.NoError(t, lock.Close())
		}
		fmt.Println("agent: done")
	}
}

// agent is a process of TestAgentProcess.
type agent struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.Writer
	out   *bufio.Reader
	found string // the first line that it has printed
}

// startAgent starts an agent that takes a lock with Inhibit, and waits until it has printed what it found.
func startAgent(t *testing.T, store *logindhost.FDStore) *agent {
	t.Helper()
	return startAgentWith(t, store, agentOptions{})
}

// agentOptions are the options of startAgentWith.
type agentOptions struct {
	adopts bool                // the agent calls Adopt before Inhibit
	others map[string]*os.File // what systemd passes to the agent beside the stored descriptors, by name
}

// startAgentWith starts an agent, as startAgent does, with options.
func startAgentWith(t *testing.T, store *logindhost.FDStore, options agentOptions) *agent {
	t.Helper()
	does := "inhibits"
	if options.adopts {
		does = adopts
	}
	self, err := os.Executable()
	require.NoError(t, err)
	a := &agent{t: t, cmd: store.Command(self, "-test.run=^TestAgentProcess$")}
	a.cmd.Env = append(a.cmd.Env, agentEnv+"="+does)
	a.cmd.Stderr = os.Stderr
	a.in, err = a.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := a.cmd.StdoutPipe()
	require.NoError(t, err)
	a.out = bufio.NewReader(out)
	require.NoError(t, store.Start(a.cmd, options.others))
	t.Cleanup(a.kill)
	a.found = a.nextLine()
	return a
}

// nextLine returns the next printed line.
func (a *agent) nextLine() string {
	a.t.Helper()
	for {
		line, err := a.out.ReadString('\n')
		require.NoError(a.t, err)
		if said, ok := strings.CutPrefix(line, "agent: "); ok {
			return strings.TrimSpace(said)
		}
	}
}

// command sends a command to the agent and waits until it is done.
func (a *agent) command(what string) {
	a.t.Helper()
	_, err := fmt.Fprintln(a.in, what)
	require.NoError(a.t, err)
	require.Equal(a.t, "done", a.nextLine())
}

// kill kills the agent's process, which closes its copy of the lock.
func (a *agent) kill() {
	if a.cmd.ProcessState == nil {
		_ = a.cmd.Process.Kill() // it may be dead already
		_ = a.cmd.Wait()         // killed: never nil
	}
}

// requireStored waits until the store has descriptors with exactly these names.
func requireStored(t *testing.T, store *logindhost.FDStore, names ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Join(store.Names(), " ") == strings.Join(names, " ")
	}, testTimeout, time.Millisecond, "%v is stored, not %v", store.Names(), names)
}

// storeMax is the FileDescriptorStoreMax of the unit of an agent.
const storeMax = 4

// hostWithFDStore returns a scripted host for agents, and their FD store.
func hostWithFDStore(t *testing.T) (*host, *logindhost.FDStore) {
	t.Helper()
	h := newHost(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", h.bus.Address)
	return h, logindhost.StartFDStore(t, storeMax)
}

// Each lock is stored under a name of its own. The command "again" takes a lock before it closes the previous one, so the
// names alternate: inhibitor, inhibitor-2, inhibitor. When the agent replaces or releases a lock, the stored copy is
// removed. Otherwise logind would delay the shutdown for nobody.
func TestInhibitStoresTheLock(t *testing.T) {
	h, store := hostWithFDStore(t)
	a := startAgent(t, store)
	require.Equal(t, "adopted=false pending=false inhibited=true fdnames=", a.found)
	requireStored(t, store, "inhibitor")
	require.Contains(t, store.Messages(), "FDSTORE=1\nFDPOLL=0\nFDNAME=inhibitor")

	a.command("again")
	requireStored(t, store, "inhibitor-2")
	awaitReleased(t, h.login1.Locks()[0])
	a.command("again")
	requireStored(t, store, "inhibitor")
	awaitReleased(t, h.login1.Locks()[1])

	last := h.login1.Locks()[2]
	requireHeld(t, last)
	a.command("release")
	awaitReleased(t, last)
	require.Empty(t, store.Names())
}

// An agent dies during a shutdown, and so does the next one. logind grants no new lock, but each agent gets the stored one
// from Inhibit, without Adopt, until the third agent releases it. The name "taken" shows that systemd has passed the lock.
func TestTheStoredLockOutlivesTheAgent(t *testing.T) {
	h, store := hostWithFDStore(t)
	first := startAgent(t, store)
	lock := h.login1.Locks()[0]
	h.announceShutdown()
	requireStored(t, store, "inhibitor")
	first.kill()
	requireHeld(t, lock)

	second := startAgent(t, store)
	require.Equal(t, "adopted=false pending=true inhibited=true fdnames=taken", second.found)
	require.Len(t, h.login1.Locks(), 1, "logind has granted only the first lock")
	second.kill()
	requireHeld(t, lock)

	third := startAgent(t, store)
	require.Equal(t, "adopted=false pending=true inhibited=true fdnames=taken", third.found)
	third.command("release")
	awaitReleased(t, lock)
	require.Empty(t, store.Names(), "removed from the store before it was closed")
}

// An agent has died, and the next one calls Adopt, which returns the stored lock. Inhibit then neither returns nor closes
// that lock: during a shutdown Inhibit fails, and otherwise it takes a second lock, after which the agent closes the first.
func TestAdoptReturnsTheStoredLock(t *testing.T) {
	for name, preparing := range map[string]bool{"in a shutdown": true, "idle": false} {
		t.Run(name, func(t *testing.T) {
			h, store := hostWithFDStore(t)
			first := startAgent(t, store)
			h.login1.SetPreparing(preparing)
			requireStored(t, store, "inhibitor")
			first.kill()
			second := startAgentWith(t, store, agentOptions{adopts: true})
			require.Equal(t, fmt.Sprintf("adopted=true pending=%t inhibited=%t fdnames=taken", preparing, !preparing), second.found)
			locks := h.login1.Locks()
			held := locks[len(locks)-1] // in a shutdown the adopted lock, which is the only one
			if !preparing {
				require.Len(t, locks, 2)
				awaitReleased(t, locks[0])
			}
			requireHeld(t, held)
			second.command("release")
			awaitReleased(t, held)
			require.Empty(t, store.Names())
		})
	}
}

// An agent dies while no shutdown is in progress. The next agent's Inhibit takes a new lock, which is stored with the name
// inhibitor-2, and closes the stored one.
func TestTheStoredLockIsClosedWithoutAShutdown(t *testing.T) {
	h, store := hostWithFDStore(t)
	first := startAgent(t, store)
	requireStored(t, store, "inhibitor")
	first.kill()

	second := startAgent(t, store)
	require.Equal(t, "adopted=false pending=false inhibited=true fdnames=taken", second.found)
	requireStored(t, store, "inhibitor-2")
	locks := h.login1.Locks()
	require.Len(t, locks, 2, "the stored one and the new one")
	awaitReleased(t, locks[0])
	requireHeld(t, locks[1])
}

// systemd also passes descriptors with other names, one of them similar. They stay in LISTEN_FDNAMES for the
// code that expects them. Only the lock is marked there as taken.
func TestOtherPassedDescriptorsAreNotTouched(t *testing.T) {
	_, store := hostWithFDStore(t)
	startAgent(t, store).kill() // it has stored its lock
	requireStored(t, store, "inhibitor")
	other, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	a := startAgentWith(t, store, agentOptions{others: map[string]*os.File{"http": other, "inhibitors": other}})
	require.Equal(t, "adopted=false pending=false inhibited=true fdnames=http:inhibitors:taken", a.found)
}

// The unit's FileDescriptorStoreMax is 0, so systemd closes what it receives. The lock is held as long as
// the agent lives. An agent that restarts during a shutdown has no lock.
func TestAFullFDStoreIsNoError(t *testing.T) {
	h := newHost(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", h.bus.Address)
	const storesNothing = 0
	store := logindhost.StartFDStore(t, storesNothing)
	a := startAgent(t, store)
	require.Equal(t, "adopted=false pending=false inhibited=true fdnames=", a.found)
	require.Eventually(t, func() bool { return len(store.Messages()) == 1 }, testTimeout, time.Millisecond, "the lock was sent to systemd")
	a.kill()
	awaitReleased(t, h.login1.Locks()[0])

	h.beginShutdownSilently()
	a = startAgent(t, store)
	require.Equal(t, "adopted=false pending=true inhibited=false fdnames=", a.found, "it has no lock")
}

// systemd's notification socket does not exist, so the lock cannot be stored. The lock is taken and
// released all the same.
func TestALockIsHeldWithoutANotifySocket(t *testing.T) {
	h := newHost(t)
	t.Setenv("NOTIFY_SOCKET", "/nowhere/notify")
	h.options.NoFDStore = false // the lock is to be stored, as by default
	lock, atLogind := h.inhibit(t, h.connect(t))
	requireHeld(t, atLogind)
	require.NoError(t, lock.Close(), "Close asks systemd to remove only what was sent to its store")
	awaitReleased(t, atLogind)
}
