//go:build linux

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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
	"github.com/kubegrace/kubegrace/shutdown"
)

// crashedNode is a node whose agents are killed. Its pods and what it has stored go on.
type crashedNode struct {
	t      *testing.T
	number int
	rng    *rand.Rand
	server *realServer
	way    string

	proxy   *apiserverproxy.Proxy // of this node alone
	refuses atomic.Bool           // it takes no statuses of pods for now
	orders  orders
	began   time.Duration   // since the boot, when the first agent was told to begin
	turned  bool            // the shutdown does not go on
	lost    bool            // nor can the agent know that it does
	owed    map[string]bool // pods whose final status the API server is to have in the end
	stored  storedShutdown  // as the agent that was killed last has left it

	signals []signal        // of this boot
	before  int             // so many of them are of the agents before
	former  []signal        // of the boot before
	late    []time.Duration // ages of kills that were not on the disk
	wrong   []error
}

// storedShutdown is what this test reads in the file of an agent.
type storedShutdown struct {
	BootID         string // "": nothing was stored
	Report         shutdown.Report
	Unacknowledged []struct {
		Pod   *v1.Pod
		Ended bool
	}
}

func (n *crashedNode) blame(format string, args ...any) {
	n.wrong = append(n.wrong, fmt.Errorf(format, args...))
}

// prepare makes the node and its pods.
func (n *crashedNode) prepare() error {
	dir, err := os.MkdirTemp(n.t.TempDir(), "")
	if err != nil {
		return err
	}
	n.orders = orders{
		Node: fmt.Sprintf("node-%d", n.number), Pods: n.makePods(),
		StateDir: filepath.Join(dir, "state"), Journal: filepath.Join(dir, "journal"),
	}
	if err := os.Mkdir(n.orders.StateDir, 0o700); err != nil {
		return err
	}
	n.refuses.Store(n.rng.IntN(2) == 0)
	n.connect()
	node := nodeOf(ready)
	node.Name, node.UID, node.ResourceVersion = n.orders.Node, "", ""
	if _, err := n.server.api.Nodes().Create(n.t.Context(), node, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, pod := range n.orders.Pods {
		n.server.create(pod)
	}
	return nil
}

// connect gives the node another way to the API server, on which there are faults.
func (n *crashedNode) connect() {
	n.proxy = apiserverproxy.Start(n.t, n.server.url)
	n.proxy.Script(n.faults())
	n.orders.Server = n.proxy.URL()
}

// faults are those of the network between the node and the API server.
func (n *crashedNode) faults() apiserverproxy.Script {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(n.rng.Uint64(), n.rng.Uint64()))
	harm := n.rng.IntN(10)
	return func(r apiserverproxy.Request) apiserverproxy.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case n.refuses.Load() && r.Resource == "pods/status":
			return apiserverproxy.Fault{Status: http.StatusServiceUnavailable}
		case rng.IntN(10) >= harm:
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

// turn is the end of the shutdown while no agent runs.
func (n *crashedNode) turn() error {
	n.turned = n.way != goesOn
	n.refuses.Store(false)
	if n.way != isRebooted {
		return nil
	}
	n.proxy.Die() // what was under way is not carried out any more
	n.connect()
	n.orders.Booted = true
	n.former, n.signals, n.before = n.signals, nil, 0
	n.orders.Journal += " of the next boot"
	for _, pod := range n.orders.Pods { // a static pod runs again, and its agent says so
		if isStatic(pod) {
			delete(n.owed, pod.Name)
			n.server.setStatus(pod)
		}
	}
	path := filepath.Join(n.orders.StateDir, "graceful_node_shutdown_progress")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var stored map[string]any
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err != nil {
		return err
	}
	stored["bootID"] = "a boot of many days"
	for _, key := range []string{"startMonotonicNanoseconds", "hostEndMonotonicNanoseconds"} {
		since, _ := stored[key].(float64)
		stored[key] = int64(since) + int64(1000*time.Hour)
	}
	if data, err = json.Marshal(stored); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func isStatic(pod *v1.Pod) bool { return pod.Annotations[v1.MirrorPodAnnotationKey] != "" }

// owe notes which final statuses the next agent has to tell.
func (n *crashedNode) owe() {
	for _, s := range n.stored.Unacknowledged {
		if n.orders.Booted && !isStatic(s.Pod) || !n.orders.Booted && s.Ended {
			n.owed[s.Pod.Name] = true
		}
	}
}

// look reads what an agent has left that was killed.
func (n *crashedNode) look(killed time.Duration) error {
	signals, err := readSignals(n.orders.Journal)
	if err != nil {
		return err
	}
	n.signals = signals
	fresh := signals[n.before:]
	n.before = len(signals)
	if n.turned && len(fresh) > 0 {
		n.blame("%v were killed in a shutdown that is over", fresh)
	}
	before := n.stored
	n.stored = storedShutdown{}
	data, err := os.ReadFile(filepath.Join(n.orders.StateDir, "graceful_node_shutdown_progress"))
	if err == nil {
		err = json.Unmarshal(data, &n.stored)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("what was stored is not readable: %w", err)
	}
	known := reported(n.stored.Report)
	for _, s := range fresh {
		if !known[s.Name] {
			n.late = append(n.late, killed-s.At)
		}
	}
	same := before.Report.Started.Equal(n.stored.Report.Started) // else its time was over, and the host began another one
	for name := range reported(before.Report) {
		if same && !known[name] {
			n.blame("pod %s was stored and is no more", name)
		}
	}
	return nil
}

func reported(report shutdown.Report) map[string]bool {
	names := map[string]bool{}
	for _, pod := range report.Pods {
		names[pod.Name] = true
	}
	return names
}

// readSignals reads a journal; without one there are none.
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
	cmd   *exec.Cmd
	in    io.Closer
	lines chan string // what it says; closed at its end
	runs  []string    // the pods that it has started, as far as was read
}

func (n *crashedNode) start(first bool) (*crashAgent, error) {
	o := n.orders
	o.Begins = first
	switch {
	case first:
		o.Host = []string{hostIsIdle, hostIsIdle, hostIsNone}[n.rng.IntN(3)]
	case n.way == isCancelled && n.turned:
		o.Host = hostIsIdle
	case n.turned:
		o.Host = []string{hostIsIdle, hostCannotTell, hostIsNone}[n.rng.IntN(3)]
	default:
		o.Host = []string{hostGoesDown, hostCannotTell, hostIsNone}[n.rng.IntN(3)]
		n.lost = o.Host != hostGoesDown && n.stored.BootID == ""
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
	if a.in, err = a.cmd.StdinPipe(); err != nil {
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

// crash kills the agent, and says when.
func (a *crashAgent) crash(c crash) (at time.Duration, err error) {
	if c.ready {
		if _, ok := a.said("ready"); !ok {
			return 0, errors.Join(errors.New("an agent did not become ready"), a.kill())
		}
	}
	<-time.After(c.after)
	at = sinceBoot()
	return at, a.kill()
}

// kill is kill -9, of one that may have ended.
func (a *crashAgent) kill() error {
	if err := a.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	for line := range a.lines { // until all was read: Wait closes the pipe
		a.heard(line)
	}
	_ = a.cmd.Wait() // killed: never nil
	return nil
}

func (a *crashAgent) heard(line string) {
	if name, ok := strings.CutPrefix(line, "agent: runs "); ok {
		a.runs = append(a.runs, name)
	}
}

// said waits for a line that begins so, and gives the rest; false: there is none.
func (a *crashAgent) said(what string) (rest string, ok bool) {
	enough := time.After(30 * time.Second)
	for {
		select {
		case line, more := <-a.lines:
			a.heard(line)
			if rest, ok = strings.CutPrefix(line, "agent: "+what); ok || !more {
				return strings.TrimSpace(rest), ok
			}
		case <-enough:
			return "", false
		}
	}
}
