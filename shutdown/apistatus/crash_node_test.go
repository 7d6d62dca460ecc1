//go:build linux && go1.25

package apistatus_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
)

// crashedNode is a node whose agents are killed one after the other. Its pods and its state
// files outlive them.
type crashedNode struct {
	t      *testing.T
	number int
	rng    *rand.Rand
	server *realServer
	ending string // one of the constants in crash_test.go

	proxy           *apiserverproxy.Proxy
	refuses         atomic.Bool // the proxy refuses final statuses
	config          agentConfig
	began           time.Duration   // the start of the first agent, since the boot
	shutdownOver    bool            // the shutdown was cancelled, or the node was rebooted
	agentCannotKnow bool            // neither the state log nor the host has the shutdown
	mustBeFlushed   map[string]bool // pods whose final status the API server must have at the end
	stored          storedShutdown  // the state log of the last killed agent

	signals               []signal // of this boot
	seenSignals           int      // how many signals are older than the last agent
	signalsOfPreviousBoot []signal
	storedOfPreviousBoot  map[string]bool // pods that the state log of that boot has as signalled; the log precedes the signal
	unstoredAges          []time.Duration // ages, at the kill of an agent, of signals that were not stored
	violations            []error
}

// storedShutdown is the newest shutdown in the state log.
type storedShutdown struct {
	shutdown *node.Shutdown // nil: none was stored
	pods     []*node.Pod
}

// readLog reads the state log in a folder.
func readLog(dir string) (s storedShutdown, err error) {
	contents, err := statelog.ReadFile(dir)
	return storedShutdown{shutdown: contents.Entries.Shutdown, pods: contents.Entries.Pods}, err
}

// signalled returns the names of the pods that the state log has as signalled.
func (s storedShutdown) signalled() map[string]bool {
	names := map[string]bool{}
	for _, pod := range s.pods {
		if !pod.Signalled.IsZero() {
			names[pod.Name] = true
		}
	}
	return names
}

// ofShutdown returns the pods of the shutdown in the log. The log may also have pods of an earlier one, which was
// over when an agent heard of the next.
func (s storedShutdown) ofShutdown() []*node.Pod {
	return node.PodsOf(s.shutdown, s.pods)
}

// isSameAs reports whether two logs are about the same shutdown.
func (s storedShutdown) isSameAs(other storedShutdown) bool {
	return s.shutdown != nil && other.shutdown != nil && s.shutdown.Wall.Equal(other.shutdown.Wall)
}

// addViolation records that an agent has broken a promise. The test goes on, and fails at its end.
func (n *crashedNode) addViolation(format string, args ...any) {
	n.violations = append(n.violations, fmt.Errorf(format, args...))
}

// prepare makes the node and its pods.
func (n *crashedNode) prepare() error {
	dir, err := os.MkdirTemp(n.t.TempDir(), "")
	if err != nil {
		return err
	}
	n.config = agentConfig{
		Node: fmt.Sprintf("node-%d", n.number), Pods: n.makePods(),
		StateDir: filepath.Join(dir, "state"), Journal: filepath.Join(dir, "journal"),
	}
	if err := os.Mkdir(n.config.StateDir, 0o700); err != nil {
		return err
	}
	n.refuses.Store(n.rng.IntN(2) == 0)
	n.connectThroughNewProxy()
	object := nodeOf(ready)
	object.Name, object.UID, object.ResourceVersion = n.config.Node, "", ""
	if _, err := n.server.api.Nodes().Create(n.t.Context(), object, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, pod := range n.config.Pods {
		n.server.create(pod)
	}
	return nil
}

// connectThroughNewProxy puts a new proxy with faults between the node and the API server.
func (n *crashedNode) connectThroughNewProxy() {
	n.proxy = apiserverproxy.Start(n.t, n.server.url)
	n.proxy.Script(n.networkFaults())
	n.config.Server = n.proxy.URL()
}

// networkFaults returns a script with random faults between the node and the API server.
func (n *crashedNode) networkFaults() apiserverproxy.Script {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(n.rng.Uint64(), n.rng.Uint64()))
	faultsInTen := n.rng.IntN(10)
	return func(r apiserverproxy.Request) apiserverproxy.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case n.refuses.Load() && r.Resource == "pods/status":
			return apiserverproxy.Fault{Status: http.StatusServiceUnavailable}
		case rng.IntN(10) >= faultsInTen:
			return apiserverproxy.Fault{}
		case rng.IntN(2) == 0:
			return apiserverproxy.Fault{Delay: time.Duration(rng.IntN(200)) * time.Millisecond}
		case rng.IntN(3) == 0:
			return apiserverproxy.Fault{Lost: true}
		default:
			return apiserverproxy.Fault{Status: http.StatusServiceUnavailable}
		}
	}
}

// endShutdown cancels the shutdown or reboots the node, while no agent runs, unless the shutdown
// goes on.
func (n *crashedNode) endShutdown() error {
	n.shutdownOver = n.ending != goesOn
	n.refuses.Store(false)
	if n.ending != isRebooted {
		return nil
	}
	n.proxy.Die() // so that no request of the previous boot arrives later
	n.connectThroughNewProxy()
	n.config.NextBoot = true
	n.signalsOfPreviousBoot, n.signals, n.seenSignals = n.signals, nil, 0
	n.storedOfPreviousBoot = n.stored.signalled()
	n.config.Journal += " of the next boot"
	for _, pod := range n.config.Pods { // static pods start again after a reboot
		if staticpod.IsOrMirrors(pod) {
			delete(n.mustBeFlushed, pod.Name)
			n.server.setStatus(pod)
		}
	}
	path := filepath.Join(n.config.StateDir, "graceful_node_shutdown_log")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, bootID.ReplaceAll(data, []byte(`"bootID":"the previous boot"`)), 0o600)
}

// bootID matches the boot ID in a state log.
var bootID = regexp.MustCompile(`"bootID":"[^"]*"`)

// recordUnacknowledged adds the pods whose stored final statuses the next agent has to send: signalled pods that have
// ended. A reboot ends all pods, but static ones run again.
func (n *crashedNode) recordUnacknowledged() {
	for _, pod := range n.stored.pods {
		hasEnded := !pod.Ended.IsZero() || n.config.NextBoot
		runsAgain := n.config.NextBoot && pod.Static
		if !pod.Signalled.IsZero() && hasEnded && !pod.Told && !runsAgain {
			n.mustBeFlushed[pod.Name] = true
		}
	}
}

// readAfterCrash reads and checks the journal and the state log after an agent was killed. killed is when that was,
// since the boot.
func (n *crashedNode) readAfterCrash(killed time.Duration) error {
	signals, err := readSignals(n.config.Journal)
	if err != nil {
		return err
	}
	n.signals = signals
	fresh := n.checkFresh()
	n.seenSignals = len(signals)
	before := n.stored
	if n.stored, err = readLog(n.config.StateDir); err != nil {
		return fmt.Errorf("failed to read the state log: %w", err)
	}
	known := n.stored.signalled()
	for _, s := range fresh {
		if !known[s.Name] {
			n.unstoredAges = append(n.unstoredAges, killed-s.At)
		}
	}
	for name := range before.signalled() {
		if before.isSameAs(n.stored) && !known[name] { // otherwise the host has begun another shutdown
			n.addViolation("pod %s is no longer stored", name)
		}
	}
	return nil
}

// checkFresh returns the signals of the last agent. If the shutdown is over, it signals only pods that were signalled
// before. After a cancellation that includes a pod that only the log calls signalled: its agent died between the log
// and the kill, and the next agent cannot know that the pod was not reached.
func (n *crashedNode) checkFresh() []signal {
	before, fresh := n.signals[:n.seenSignals], n.signals[n.seenSignals:]
	signalled := map[string]bool{}
	if n.ending == isCancelled {
		signalled = n.stored.signalled()
	}
	for _, s := range before {
		signalled[s.Name] = true
	}
	for _, s := range fresh {
		if n.shutdownOver && !signalled[s.Name] {
			n.addViolation("%v was killed in a shutdown that is over", s)
		}
	}
	return fresh
}

// readSignals reads a journal. It returns none if the file does not exist.
func readSignals(path string) ([]signal, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var signals []signal
	for line := range strings.Lines(string(data)) {
		var s signal
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			return nil, err
		}
		signals = append(signals, s)
	}
	return signals, nil
}

// crashAgent is the process of an agent.
type crashAgent struct {
	cmd         *exec.Cmd
	stdin       io.Closer
	lines       chan string // standard output; closed when the process ends
	startedPods []string    // from the lines that were read
}

// start starts an agent process. The first agent begins the shutdown. What the agent's host says follows from how the
// shutdown ends, and is random where several answers are possible.
func (n *crashedNode) start(first bool) (*crashAgent, error) {
	o := n.config
	o.BeginShutdown = first
	if n.stored.shutdown != nil {
		o.HostEnd = n.stored.shutdown.Wall.Add(hostLimit)
	}
	switch {
	case first && n.ending == isCancelled:
		o.Host = hostIdle // a host cannot cancel a shutdown that Trigger has begun
	case first:
		o.Host = []string{hostIdle, hostIdle, hostNone}[n.rng.IntN(3)]
	case n.ending == isCancelled && n.shutdownOver:
		o.Host = hostIdle
	case n.shutdownOver:
		o.Host = []string{hostIdle, hostUnknown, hostNone}[n.rng.IntN(3)]
	default:
		o.Host = []string{hostPending, hostUnknown, hostNone}[n.rng.IntN(3)]
		n.agentCannotKnow = o.Host != hostPending && n.stored.shutdown == nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &crashAgent{cmd: exec.CommandContext(n.t.Context(), self, "-test.run=^TestCrashAgent$"), lines: make(chan string, 1000)}
	a.cmd.Env = append(os.Environ(), asCrashAgent+"="+string(text))
	a.cmd.Stderr = io.Discard
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if first {
		n.began = sinceBoot()
	}
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(a.lines)
		for in := bufio.NewReader(out); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			a.lines <- strings.TrimSpace(line)
		}
	}()
	return a, nil
}

// crash kills the agent at the given moment, and returns when that was.
func (a *crashAgent) crash(c crash) (at time.Duration, err error) {
	if c.ready {
		if _, ok := a.awaitLine("ready"); !ok {
			return 0, errors.Join(errors.New("an agent did not become ready"), a.kill())
		}
	}
	<-time.After(c.after)
	at = sinceBoot()
	return at, a.kill()
}

// kill sends SIGKILL to the agent, which may have exited.
func (a *crashAgent) kill() error {
	if err := a.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	for line := range a.lines { // until all was read: Wait closes the pipe
		a.parseLine(line)
	}
	_ = a.cmd.Wait() // killed: never nil
	return nil
}

// parseLine records a pod that the agent has started after the reboot, if the line says so.
func (a *crashAgent) parseLine(line string) {
	if name, ok := strings.CutPrefix(line, "agent: runs "); ok {
		a.startedPods = append(a.startedPods, name)
	}
}

// awaitLine waits for the line "agent: " + what and returns the rest of it. ok is false if the agent ends before, or
// does not print it within 30 s.
func (a *crashAgent) awaitLine(what string) (rest string, ok bool) {
	timeout := time.After(30 * time.Second)
	for {
		select {
		case line, more := <-a.lines:
			a.parseLine(line)
			if rest, ok = strings.CutPrefix(line, "agent: "+what); ok || !more {
				return strings.TrimSpace(rest), ok
			}
		case <-timeout:
			return "", false
		}
	}
}
