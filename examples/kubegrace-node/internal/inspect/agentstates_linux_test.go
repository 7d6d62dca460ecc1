package inspect_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
)

// The drop-ins of logind that set its limit: that of kubegrace-node, and one of the site, whose name sorts
// after it, so that it overrides it.
const (
	agentsFile = "/etc/systemd/logind.conf.d/zz-kubegrace.conf"
	siteFile   = "/etc/systemd/logind.conf.d/zzz-site.conf"
)

// agent starts a fake kubegrace-node. Its drop-in raises logind's limit to 30 s. On its socket, which only
// root may open, it answers with status. With status.Held it also takes a lock.
func (m *fakeMachine) agent(status api.Status) {
	m.t.Helper()
	m.write(agentsFile, "# Written by kubegrace: how long a node shutdown may be delayed.\n[Login]\nInhibitDelayMaxSec=30\n")
	m.login1.SetLimit(30 * time.Second)
	if status.Held {
		m.lock("kubegrace-node", kubegraceWhy)
	}
	status.Meta = api.Meta{APIVersion: api.Version, Kind: "Status"}
	status.AskedSeconds = 30
	m.answer(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(status) // the client reports a failure
	})
}

// answer serves a handler on the agent's socket.
func (m *fakeMachine) answer(handler http.HandlerFunc) {
	m.t.Helper()
	listener, err := socket.Listen(filepath.Join(m.root, socket.Default))
	require.NoError(m.t, err)
	server := httptest.NewUnstartedServer(handler)
	server.Listener = listener
	server.Start()
	m.t.Cleanup(server.Close)
}

// Each case is a state of kubegrace-node. Root asks the agent over its socket and so knows what happens to the
// pods (status, want). The user nobody may not open the socket: it only sees the agent's lock and its drop-in,
// and mostly cannot tell whether pods lose time, which is exit status 4 (nobodys, nobodySees). 50-site.conf sorts before
// the agent's drop-in, so its 15 s never count.
func TestStatusOfTheAgent(t *testing.T) {
	program := testProgram(t)
	for name, test := range map[string]struct {
		agent      api.Status
		site       time.Duration // the limit that the file of the site sets; 0: there is no such file
		status     int           // the exit status for root
		want       string
		nobodys    int // the exit status for the user nobody
		nobodySees string
	}{
		"it holds the only lock": {
			agent: api.Status{Held: true, PodCount: 3}, status: 0, want: "kubegrace-node (PID 812) holds the inhibitor lock for up to 30s. No pod is cut short, of 3.",
			nobodys: 4, nobodySees: "kubegrace-node (PID 812) holds the inhibitor lock for up to 30s. Which pods lose time could not be seen: run it as root, or give the agent's configuration with --config.",
		},
		"a pod asks for more than its bucket has": {
			agent: api.Status{Held: true, PodCount: 3, CutShort: 1, LostSeconds: 7}, status: 2, want: "Pods cut short: 1 of 3; 7s are lost.",
			nobodys: 4, nobodySees: "Which pods lose time could not be seen: run it as root, or give the agent's configuration with --config.",
		},
		"a file of the site sets too little": {
			agent: api.Status{Held: true, PodCount: 3, CutShort: 2, LostSeconds: 12}, site: 15 * time.Second, status: 2,
			want:    "kubegrace-node asks for 30s, and the host waits for 15s, by " + siteFile,
			nobodys: 2, nobodySees: "kubegrace-node (PID 812) asks for 30s, and the host goes down after 15s, by " + siteFile,
		},
		"a file of the site sets enough for the pods": {
			agent: api.Status{Held: true, PodCount: 3}, site: 25 * time.Second, status: 0, want: "No pod is cut short, of 3.",
			nobodys: 2, nobodySees: "asks for 30s, and the host goes down after 25s",
		},
		"the container runtime is away": {
			agent: api.Status{Held: true, PodsUnknown: true}, status: 4, want: "Its pods are not known: the container runtime does not list them.",
			nobodys: 4, nobodySees: "Which pods lose time could not be seen: run it as root, or give the agent's configuration with --config.",
		},
		"it is drained": {
			agent: api.Status{Drained: true}, status: 0, want: "this machine is drained: kubegrace-node drain has stopped its pods",
			nobodys: 4, nobodySees: "kubegrace-node runs, and holds no lock: this machine is drained, or nothing waits for its pods.",
		},
		"it holds no lock": {
			agent: api.Status{PodCount: 3, Missing: []string{"missing: inhibitor lock: no bus"}}, status: 3,
			want:    "nothing waits for the pods: kubegrace-node runs, and holds no lock.",
			nobodys: 4, nobodySees: "kubegrace-node runs, and holds no lock",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.agent(test.agent)
			m.dropIn("/etc/systemd/logind.conf.d/50-site.conf", 15*time.Second)
			if test.site > 0 {
				m.dropIn(siteFile, test.site)
				m.login1.SetLimit(test.site)
			}
			r := m.look()
			requireStatus(t, test.status, r)
			require.Contains(t, r.out, test.want)
			require.Contains(t, r.out, "50-site.conf: 15s, overridden")
			for _, line := range test.agent.Missing {
				require.Contains(t, r.out, line)
			}
			if test.site > 0 {
				require.Contains(t, r.out, "Set InhibitDelayMaxSec=30 or more in "+siteFile+", or remove it there.")
			}
			if os.Getuid() == 0 { // otherwise lookAsNobody runs as this user, who may ask the agent too
				r = m.lookAsNobody(program)
				requireStatus(t, test.nobodys, r)
				require.Contains(t, r.out, test.nobodySees)
			}
		})
	}
}

// An agent answers on its socket with an error, and has neither a lock nor a drop-in. What happens to the pods
// is not known, so the status is 4, and the agent's answer is shown.
func TestAnAgentThatAnswersNonsense(t *testing.T) {
	m := newMachine(t)
	m.answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	r := m.look()
	requireStatus(t, 4, r)
	require.Contains(t, r.out, "kubegrace-node: ")
	require.Contains(t, r.out, "418")
}
