package statelog_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// The files in a state folder.
const (
	logFile   = "graceful_node_shutdown_log"
	timesFile = "graceful_node_shutdown_state"
)

// at returns the time that is this long after the boot.
func at(since time.Duration) time.Time { return time.Unix(0, 0).UTC().Add(since) }

// boot is an Options.Boot: the boot has the ID "one", and was an hour ago.
func boot() (id string, since time.Duration, err error) { return "one", time.Hour, nil }

// nextBoot is an Options.Boot: the boot has the ID "two", and was a minute ago.
func nextBoot() (id string, since time.Duration, err error) { return "two", time.Minute, nil }

// options returns the options of an agent of the boot "one", which also reads and writes the kubelet's file.
func options(dir string) statelog.Options {
	return statelog.Options{Dir: dir, Times: true, Boot: boot}
}

// openLog returns a log that has locked its folder. The test must close the log.
func openLog(t testing.TB, o statelog.Options) *statelog.Log {
	t.Helper()
	l := statelog.New(o)
	warning, err := l.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, warning)
	return l
}

// await returns the error of a future, once it has completed.
func await(t testing.TB, written *call.Future[struct{}]) error {
	t.Helper()
	_, err := written.Wait(t.Context())
	return err
}

// requireWritten waits for a future, which must complete without an error.
func requireWritten(t testing.TB, written *call.Future[struct{}]) {
	t.Helper()
	require.NoError(t, await(t, written))
}

// writeLog writes the log of an agent that appends these entries, one after the other, and ends.
func writeLog(t testing.TB, dir string, appended ...node.Entries) {
	t.Helper()
	l := openLog(t, options(dir))
	for _, e := range appended {
		requireWritten(t, l.Append(e))
	}
	closeLog(t, l)
}

// closeLog closes a log, which must succeed.
func closeLog(t testing.TB, l *statelog.Log) {
	t.Helper()
	require.NoError(t, l.Close(time.Now().Add(time.Minute)))
}

// contentsOf returns what a log has read. The disk must not hang.
func contentsOf(t testing.TB, l *statelog.Log) statelog.Contents {
	t.Helper()
	c, err := l.Read(t.Context())
	require.NoError(t, err)
	return c
}

// nextAgentReads returns what the next agent of this boot reads in a folder.
func nextAgentReads(t testing.TB, dir string) statelog.Contents {
	t.Helper()
	return contentsOf(t, statelog.New(options(dir)))
}

// logPath returns the path of the log file in a folder.
func logPath(dir string) string { return filepath.Join(dir, logFile) }

// logText returns the text of the log file.
func logText(t testing.TB, dir string) []byte {
	t.Helper()
	text, err := os.ReadFile(logPath(dir))
	require.NoError(t, err)
	return text
}

// entries returns the entries of a shutdown and of pods.
func entries(s *node.Shutdown, pods ...*node.Pod) node.Entries {
	return node.Entries{Shutdown: s, Pods: pods}
}

// entriesOfPods returns the entries of pods, without a shutdown.
func entriesOfPods(pods ...*node.Pod) node.Entries { return node.Entries{Pods: pods} }

// shutdown returns a shutdown in progress, with this number.
func shutdown(number int) *node.Shutdown {
	table := timetable.New(timetable.Request{Schedule: plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 10, Seconds: 10}}, Received: at(time.Hour), HostEnd: at(time.Hour + 30*time.Second)})
	return &node.Shutdown{
		Number: number, Kind: "reboot", Origin: "logind", Began: at(time.Hour), BeganWallTime: time.Date(2026, 9, 30, 12, 0, 0, 1, time.UTC),
		Announced: []node.Announcement{{Host: true, Origin: "logind", Kind: "reboot", Deadline: at(time.Hour + 30*time.Second)}},
		Timetable: table,
	}
}

// pod returns a pod that a drain plans to kill.
func pod(name string) *node.Pod {
	grace := int64(20)
	return &node.Pod{
		Key: types.UID("uid-" + name), Namespace: "test", Name: name, KillPlanned: true,
		Object: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: name, UID: types.UID("uid-" + name)},
			Spec:       v1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []v1.Container{{Name: "main"}}},
			Status:     v1.PodStatus{Phase: v1.PodRunning},
		},
	}
}

// signalled returns a pod that shutdown 1 has begun to kill.
func signalled(name string) *node.Pod {
	p := pod(name)
	p.SignalledBy, p.Policy, p.GrantedSeconds, p.Signalled, p.Deadline = 1, node.SetTerminal, 20, at(time.Hour), at(time.Hour+20*time.Second)
	return p
}

// ended returns a pod that has ended after its kill, and whose final status is pending.
func ended(name string) *node.Pod {
	p := signalled(name)
	p.Ended, p.Outcome, p.Status = at(time.Hour), "Graceful", &v1.PodStatus{Phase: v1.PodFailed}
	return p
}
