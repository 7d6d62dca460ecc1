package plan_test

import (
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// scheduleVectors is the content of testdata/schedule.yaml. Each pair is a priority and its seconds.
type scheduleVectors struct {
	MigrateConfig struct {
		Cases []struct {
			Name            string
			Total, Critical int64
			Want            [][2]int64
		}
	} `json:"migrate_config"`
	GroupByPriority struct {
		Cases []struct {
			Name   string
			Groups [][2]int64
			Pods   map[string]int32
			Want   [][]string
		}
	} `json:"group_by_priority"`
}

// loadScheduleVectors reads the kubelet's test cases in testdata/schedule.yaml.
func loadScheduleVectors(t *testing.T) (vectors scheduleVectors) {
	t.Helper()
	data, err := os.ReadFile("testdata/schedule.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(dropBasis(t, data), &vectors))
	require.NotEmpty(t, vectors.MigrateConfig.Cases)
	require.NotEmpty(t, vectors.GroupByPriority.Cases)
	return vectors
}

// dropBasis removes the fields that say where the cases come from, so that the decoder can reject unknown fields.
func dropBasis(t *testing.T, data []byte) []byte {
	t.Helper()
	var groups map[string]map[string]any
	require.NoError(t, yaml.Unmarshal(data, &groups))
	for _, group := range groups {
		delete(group, "basis")
	}
	data, err := yaml.Marshal(groups)
	require.NoError(t, err)
	return data
}

// schedule returns the schedule with these pairs of a priority and its seconds.
func schedule(pairs [][2]int64) (s plan.Schedule) {
	for _, pair := range pairs {
		s = append(s, plan.Bucket{Priority: int32(pair[0]), Seconds: pair[1]})
	}
	return s
}

// The cases of the kubelet's TestMigrateConfig: from a total and the part for critical pods Config.Schedule makes the
// buckets that the case wants.
func TestConformanceMigrateConfig(t *testing.T) {
	for _, c := range loadScheduleVectors(t).MigrateConfig.Cases {
		t.Run(c.Name, func(t *testing.T) {
			cfg := plan.Config{
				ShutdownGracePeriod:             metav1.Duration{Duration: time.Duration(c.Total) * time.Second},
				ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: time.Duration(c.Critical) * time.Second},
			}
			for _, byPriority := range []bool{gateOn, gateOff} { // the gate of the list does not matter without a list
				require.Equal(t, schedule(c.Want), cfg.Schedule(byPriority))
			}
		})
	}
}

// The cases of the kubelet's TestGroupByPriority: each pod is in the bucket that the case wants, both by Schedule.Index and
// in a plan.
func TestConformanceGroupByPriority(t *testing.T) {
	for _, c := range loadScheduleVectors(t).GroupByPriority.Cases {
		t.Run(c.Name, func(t *testing.T) {
			s := schedule(c.Groups)
			var pods []*v1.Pod
			indexed, planned := make([][]string, len(s)), make([][]string, len(s))
			for _, name := range slices.Sorted(maps.Keys(c.Pods)) {
				i := s.Index(c.Pods[name])
				indexed[i] = append(indexed[i], name)
				pods = append(pods, pod(name, withPriority(c.Pods[name])))
			}
			for i, b := range plan.New(s, pods, plan.Options{}).Buckets {
				for _, p := range b.Pods {
					planned[i] = append(planned[i], p.Pod.Name)
				}
			}
			for i := range c.Want {
				slices.Sort(c.Want[i])
			}
			require.Equal(t, c.Want, indexed)
			require.Equal(t, c.Want, planned)
		})
	}
}
