//go:build go1.25

package shutdown_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// managerVectors has the kubelet's own test cases, which are in testdata/manager.yaml. Pods has a description of each pod,
// by its name: "prio 0" is a priority of 0, and "tgps nil" is no terminationGracePeriodSeconds.
type managerVectors struct {
	Pods        map[string][]string
	BeforeEvent struct {
		ShutdownStatus *string
		Admit          bool
		Inhibited      bool
	} `json:"before_event"`
	AfterEvent struct {
		ShutdownStatus  string
		Admit           bool
		Reason, Message string
	} `json:"after_event"`
	Cases []managerCase
}

// managerCase is one case of the kubelet's TestManager. All times are in seconds.
type managerCase struct {
	Desc            string
	Pods            any // names, or the phases of pods by name
	Total, Critical int64
	Delay, After    int64 // the host's limit at first, and the one to which it can be raised
	Overrode        bool
	Kills           map[string]int64
	Status          map[string]v1.PodPhase
	StatusCommon    statusCommon `json:"status_common"`
}

// statusCommon is what the statuses of all killed pods of a case have.
type statusCommon struct {
	Reason, Message string
	Condition       v1.PodCondition
}

// loadManagerVectors reads testdata/manager.yaml.
func loadManagerVectors(t *testing.T) managerVectors {
	t.Helper()
	data, err := os.ReadFile("testdata/manager.yaml")
	require.NoError(t, err)
	var groups map[string]managerVectors
	require.NoError(t, yaml.Unmarshal(data, &groups))
	vectors, ok := groups["nodeshutdown_manager"]
	require.True(t, ok)
	require.NotEmpty(t, vectors.Cases)
	return vectors
}

// podsOf returns the pods of a case.
func (v managerVectors) podsOf(t *testing.T, c managerCase) []*v1.Pod {
	t.Helper()
	var pods []*v1.Pod
	switch given := c.Pods.(type) {
	case []any:
		for _, name := range given {
			pods = append(pods, podFromDescription(t, name.(string), v.Pods[name.(string)]))
		}
	case map[string]any:
		for name, phase := range given {
			pod := shutdowntest.Pod(name, regularPriority, noGrace)
			pod.Status.Phase = v1.PodPhase(phase.(string))
			pods = append(pods, pod)
		}
	default:
		t.Fatalf("pods of %q are %T", c.Desc, c.Pods)
	}
	return pods
}

// podFromDescription returns the pod that a description of managerVectors.Pods describes.
func podFromDescription(t *testing.T, name string, description []string) *v1.Pod {
	t.Helper()
	require.NotEmpty(t, description, name)
	pod := shutdowntest.Pod(name, regularPriority, noGrace)
	for _, text := range description {
		what, value, _ := strings.Cut(text, " ")
		if value == "nil" {
			continue
		}
		number, err := strconv.ParseInt(value, 10, 64)
		require.NoError(t, err)
		switch what {
		case "prio":
			pod.Spec.Priority = ptr.To(int32(number))
		case "tgps":
			pod.Spec.TerminationGracePeriodSeconds = &number
		default:
			t.Fatalf("pod %s: %q is not known", name, text)
		}
	}
	return pod
}

// Each case of testdata/manager.yaml is one of the kubelet's own tests. With NoRollOver and no step but the kills, the
// manager does what the case demands.
func TestConformanceManager(t *testing.T) {
	vectors := loadManagerVectors(t)
	for _, c := range vectors.Cases {
		subtestInBubble(t, c.Desc, vectors.podsOf(t, c), func(t *testing.T, n *node) {
			n.opts.Plan.NoRollOver = true
			n.host.Limit = time.Duration(c.After) * time.Second // to which the host can raise its limit
			vectors.check(t, n, c)
		})
	}
}

// Each step that the kubelet does not have takes no time, 300 ms, or an hour, which times out. The seconds that pods get in the kubelet's
// cases do not change, whether the host grants the requested delay or only the kubelet's sum (Total, the seconds of both buckets).
func TestConformanceManagerWithOtherSteps(t *testing.T) {
	vectors := loadManagerVectors(t)
	for _, c := range vectors.Cases {
		for _, takes := range []time.Duration{0, 300 * time.Millisecond, time.Hour} {
			for name, limit := range map[string]time.Duration{"all is granted": 0, "the sum is granted": time.Duration(c.Total) * time.Second} {
				subtestInBubble(t, c.Desc+", the steps take "+takes.String()+", "+name, vectors.podsOf(t, c), func(t *testing.T, n *node) {
					n.opts.Plan.NoRollOver = true
					setSlowSteps(n, takes)
					n.host.Limit = limit
					vectors.check(t, n, c)
				})
			}
		}
	}
}

// setSlowSteps sets all steps but Prepare, each of which takes the given time. Prepare would take time from the pods if the
// host grants only the kubelet's sum.
func setSlowSteps(n *node, takes time.Duration) {
	n.opts.Hold = func(ctx context.Context) error { return times.Sleep(ctx, takes) }
	n.opts.Reporter = &shutdowntest.Reporter{PublishTakes: takes, MarkTakes: takes, FlushTakes: takes}
	n.opts.Volumes = volumes(func(ctx context.Context, _ []*v1.Pod) error { return times.Sleep(ctx, takes) })
}

// In two cases of the kubelet's TestManager, which testdata/manager.yaml does not have, the host grants less than the sum
// of the two buckets. The kubelet takes no lock then and returns an error. The manager takes the lock, shortens the
// buckets in proportion, and sets Inhibitor.Err. The pods have no grace period of their own ("nil", as the kubelet names them).
func TestConformanceManagerWhereTheHostGrantsLess(t *testing.T) {
	for _, c := range []struct {
		total, critical, granted int64
		kills                    map[string]int64
	}{
		{total: 30, critical: 10, granted: 5, kills: map[string]int64{"normal-nil": 3, "critical-nil": 1}}, // 2/3 and 1/3 of 5 s, in whole seconds
		{total: 5, critical: 5, granted: 0, kills: map[string]int64{"normal-nil": 0, "critical-nil": 0}},
	} {
		for name, set := range map[string]func(*node){"kills only": func(*node) {}, "all steps but Prepare": setAllStepsButPrepare} {
			t.Run(fmt.Sprintf("%d s of %d s, %s", c.granted, c.total, name), func(t *testing.T) {
				pods := list(shutdowntest.Pod("normal-nil", regularPriority, noGrace), shutdowntest.Pod("critical-nil", criticalPriority, noGrace))
				inBubble(t, pods, func(t *testing.T, n *node) {
					set(n)
					n.opts.Config = config(time.Duration(c.total)*time.Second, time.Duration(c.critical)*time.Second)
					n.opts.Source = grantingHost{n.host, time.Duration(c.granted) * time.Second}
					n.run()
					require.True(t, n.m.Inhibitor().Held)
					var capped *source.DelayCappedError
					require.ErrorAs(t, n.m.Inhibitor().Err, &capped)
					require.Equal(t, time.Duration(c.granted)*time.Second, capped.Granted)
					n.announce()
					n.advance(2 * time.Minute)
					require.Equal(t, c.kills, n.grantedSeconds())
				})
			})
		}
	}
}

// grantingHost is a host that grants a fixed delay, which may be 0.
type grantingHost struct {
	*shutdowntest.Host

	granted time.Duration
}

// grantingSession is a session with a grantingHost.
type grantingSession struct {
	source.Session

	granted time.Duration
}

// Connect returns a session that grants h.granted.
func (h grantingHost) Connect(ctx context.Context) (source.Session, error) {
	session, err := h.Host.Connect(ctx)
	return grantingSession{session, h.granted}, err
}

// RequestDelay grants s.granted, whatever is requested, and says that this is less.
func (s grantingSession) RequestDelay(_ context.Context, delay time.Duration) (time.Duration, error) {
	return s.granted, &source.DelayCappedError{Requested: delay, Granted: s.granted}
}

// check runs the manager of a node through a case. It requires the admission and the lock that the vectors demand before
// and after the event, and the grace periods and statuses of the case.
func (v managerVectors) check(t *testing.T, n *node, c managerCase) {
	t.Helper()
	n.opts.Config = config(time.Duration(c.Total)*time.Second, time.Duration(c.Critical)*time.Second)
	n.run()
	require.Nil(t, v.BeforeEvent.ShutdownStatus)
	require.NoError(t, n.m.ShutdownStatus())
	require.Equal(t, v.BeforeEvent.Admit, n.admitsNewPods())
	require.Equal(t, v.BeforeEvent.Inhibited, n.m.Inhibitor().Held)
	require.GreaterOrEqual(t, n.m.Inhibitor().Granted, time.Duration(c.Total)*time.Second)
	require.NoError(t, n.m.Inhibitor().Err)

	n.announce()
	require.EqualError(t, n.m.ShutdownStatus(), v.AfterEvent.ShutdownStatus)
	want := shutdown.Admission{Admit: v.AfterEvent.Admit, Reason: v.AfterEvent.Reason, Message: v.AfterEvent.Message}
	require.Equal(t, want, n.m.Admit(nil))
	n.advance(2 * time.Minute)
	require.Equal(t, c.Kills, n.grantedSeconds())
	for name, phase := range c.Status {
		kill, _ := n.killer.Kill(name)
		c.StatusCommon.check(t, kill.Status, phase)
	}
}

// check requires that a status has the phase, and the reason, message and condition of all cases.
func (s statusCommon) check(t *testing.T, status v1.PodStatus, phase v1.PodPhase) {
	t.Helper()
	require.Equal(t, phase, status.Phase)
	require.Equal(t, s.Reason, status.Reason)
	require.Equal(t, s.Message, status.Message)
	require.True(t, slices.ContainsFunc(status.Conditions, func(c v1.PodCondition) bool {
		c.LastTransitionTime = s.Condition.LastTransitionTime // any time will do
		return c == s.Condition
	}))
}
