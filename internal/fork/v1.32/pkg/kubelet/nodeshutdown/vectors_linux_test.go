package nodeshutdown

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"

	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/vectors"
)

// managerVectors are the cases of the kubelet's TestManager. Its pods have descriptions such as "prio 0" (priority) and
// "tgps nil" (terminationGracePeriodSeconds).
type managerVectors struct {
	Vectors struct {
		Pods       map[string][]string
		AfterEvent struct {
			ShutdownStatus  string
			Reason, Message string
		} `json:"after_event"`
		Cases []managerCase
	} `json:"nodeshutdown_manager"`
}

// managerCase is a case of the kubelet's TestManager. All times are in seconds.
type managerCase struct {
	Desc            string
	Pods            any                    // names, or the phases of pods by name
	Total, Critical int64                  // shutdownGracePeriod and shutdownGracePeriodCriticalPods
	Granted         int64                  `json:"after"` // how long the host delays the shutdown, after the kubelet's request
	Kills           map[string]int64       // the grace period of each killed pod
	Status          map[string]v1.PodPhase // of some pods, at the end
	StatusCommon    struct {
		Reason, Message string
		Condition       v1.PodCondition
	} `json:"status_common"`
}

// noGrace is the grace period of a pod that has none.
const noGrace = -1

// podFromDescription returns a running pod with the priority and the grace period of a description.
func podFromDescription(t *testing.T, name string, description []string) *v1.Pod {
	t.Helper()
	pod := shutdowntest.Pod(name, regular, noGrace)
	for _, text := range description {
		property, value, _ := strings.Cut(text, " ")
		if value == "nil" {
			continue
		}
		number, err := strconv.ParseInt(value, 10, 64)
		require.NoError(t, err)
		priority := int32(number) //nolint:gosec // of a vector
		switch property {
		case "prio":
			pod.Spec.Priority = &priority
		case "tgps":
			pod.Spec.TerminationGracePeriodSeconds = &number
		}
	}
	return pod
}

// podsOf returns the pods of a case: those that the case names, made from their descriptions, or pods without a grace
// period in the phases that the case lists.
func (v managerVectors) podsOf(t *testing.T, c managerCase) []*v1.Pod {
	t.Helper()
	var pods []*v1.Pod
	switch given := c.Pods.(type) {
	case []any:
		for _, name := range given {
			pods = append(pods, podFromDescription(t, name.(string), v.Vectors.Pods[name.(string)]))
		}
	case map[string]any:
		for name, phase := range given {
			pod := shutdowntest.Pod(name, regular, noGrace)
			pod.Status.Phase = v1.PodPhase(phase.(string))
			pods = append(pods, pod)
		}
	}
	require.NotEmpty(t, pods)
	return pods
}

// The cases of the kubelet's TestManager. The manager requests a delay of the whole grace period, and the host grants
// what the fake host of the kubelet's test grants. After the announcement of a shutdown the node refuses pods. The pods are
// killed with the grace periods that the case wants, and get the statuses that it wants.
func TestManagerVectors(t *testing.T) {
	cases := vectors.Read[managerVectors](t, "shutdown/testdata/manager.yaml")
	require.Len(t, cases.Vectors.Cases, 7)
	for _, c := range cases.Vectors.Cases {
		t.Run(c.Desc, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKubelet(cases.podsOf(t, c)...)
				k.host.Limit = time.Duration(c.Granted) * time.Second
				total := time.Duration(c.Total) * time.Second
				m := k.start(t, k.config(total, time.Duration(c.Critical)*time.Second))
				require.NoError(t, m.ShutdownStatus())
				require.True(t, admits(m))
				require.Equal(t, 1, k.host.Held(), "the lock is held")
				require.Equal(t, []time.Duration{total}, k.host.RequestedDelays())

				// A shutdown is announced: the node refuses pods.
				k.host.Announce(source.Event{Kind: source.KindPoweroff})
				synctest.Wait()
				want := cases.Vectors.AfterEvent
				require.EqualError(t, m.ShutdownStatus(), want.ShutdownStatus)
				require.Equal(t, lifecycle.PodAdmitResult{Reason: want.Reason, Message: want.Message}, admit(m, &v1.Pod{}))

				// The shutdown is over.
				advance(2 * time.Minute)
				require.Zero(t, k.host.Held(), "the lock is released")
				require.Equal(t, c.Kills, k.kills)
				for _, pod := range k.pods {
					if phase, isWanted := c.Status[pod.Name]; isWanted {
						c.requireStatus(t, pod.Status, phase)
					}
				}
			})
		})
	}
}

// requireStatus requires the phase, and the reason, message and condition that all pods of the case must have.
func (c managerCase) requireStatus(t *testing.T, status v1.PodStatus, phase v1.PodPhase) {
	t.Helper()
	want := c.StatusCommon
	require.Equal(t, phase, status.Phase)
	require.Equal(t, want.Reason, status.Reason)
	require.Equal(t, want.Message, status.Message)
	require.Len(t, status.Conditions, 1)
	status.Conditions[0].LastTransitionTime = metav1.Time{}
	require.Equal(t, want.Condition, status.Conditions[0])
}

// planOfManager returns the plan of the manager that a Config makes, or nil if the manager takes no lock.
func planOfManager(conf *Config) *plan.Plan {
	m, ok := newManagerOfHost(conf, &shutdowntest.Host{}).(*kubegraceManager)
	if !ok || m.Inhibitor().Off != "" {
		return nil
	}
	drain := m.Plan()
	return &drain
}

// The cases of the kubelet's Test_migrateConfig: the grace periods of all pods and of critical pods become a list of
// priorities with seconds.
func TestMigrateConfigVectors(t *testing.T) {
	cases := vectors.Read[struct {
		Migrate struct {
			Cases []struct {
				Name            string
				Total, Critical int64
				Want            [][]int64 // pairs of a priority and seconds
			}
		} `json:"migrate_config"`
	}](t, "shutdown/plan/testdata/schedule.yaml").Migrate.Cases
	require.Len(t, cases, 4)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			const graceSeconds = 600 // longer than any time of the cases
			k := newKubelet(shutdowntest.Pod("web", regular, graceSeconds), shutdowntest.Pod("dns", critical, graceSeconds))
			drain := planOfManager(k.config(time.Duration(c.Total)*time.Second, time.Duration(c.Critical)*time.Second))
			var got [][]int64
			if drain != nil { // nil: the case configures no time
				for _, bucket := range drain.Buckets {
					got = append(got, []int64{int64(bucket.Priority), bucket.WantedSeconds})
				}
			}
			require.Equal(t, c.Want, got)
		})
	}
}

// The cases of the kubelet's Test_groupByPriority: each pod is in the bucket of the highest priority that is not above
// its own.
func TestGroupByPriorityVectors(t *testing.T) {
	cases := vectors.Read[struct {
		Group struct {
			Cases []struct {
				Name   string
				Groups [][]int64        // pairs of a priority and seconds
				Pods   map[string]int32 // the priority of each pod
				Want   [][]string       // the pods of each bucket
			}
		} `json:"group_by_priority"`
	}](t, "shutdown/plan/testdata/schedule.yaml").Group.Cases
	require.Len(t, cases, 2)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			k := newKubelet()
			for name, priority := range c.Pods {
				k.pods = append(k.pods, longPod(name, priority))
			}
			conf := k.config(0, 0) // the list replaces these two grace periods
			for _, group := range c.Groups {
				conf.ShutdownGracePeriodByPodPriority = append(conf.ShutdownGracePeriodByPodPriority,
					kubeletconfig.ShutdownGracePeriodByPodPriority{Priority: int32(group[0]), ShutdownGracePeriodSeconds: group[1]})
			}
			for i, bucket := range planOfManager(conf).Buckets {
				var names []string
				for _, pod := range bucket.Pods {
					names = append(names, pod.Pod.Name)
				}
				require.ElementsMatch(t, c.Want[i], names)
			}
		})
	}
}
