package shutdown_test

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The priority of the pods in the first bucket, and the lowest priority of critical pods, which are in the second one.
const (
	regularPriority  int32 = 0
	criticalPriority int32 = 2_000_000_000
)

// noGrace is the grace period of a pod that has none.
const noGrace = -1

// allOff is a feature gate of which every feature is off.
type allOff struct {
	featuregate.FeatureGate // nil: only Enabled is called
}

// Enabled reports that the feature is off.
func (allOff) Enabled(featuregate.Feature) bool { return false }

// config returns a configuration: total (ShutdownGracePeriod), of which critical (ShutdownGracePeriodCriticalPods) is the part
// for critical pods, and list (ShutdownGracePeriodByPodPriority).
func config(total, critical time.Duration, list ...plan.PodPriorityGracePeriod) plan.Config {
	return plan.Config{
		ShutdownGracePeriod:              metav1.Duration{Duration: total},
		ShutdownGracePeriodCriticalPods:  metav1.Duration{Duration: critical},
		ShutdownGracePeriodByPodPriority: list,
	}
}

// configWithList returns a configuration with only the list ShutdownGracePeriodByPodPriority.
func configWithList(list ...plan.PodPriorityGracePeriod) plan.Config { return config(0, 0, list...) }

// priorityPeriod is an entry of Config.ShutdownGracePeriodByPodPriority.
func priorityPeriod(priority int32, seconds int64) plan.PodPriorityGracePeriod {
	return plan.PodPriorityGracePeriod{Priority: priority, ShutdownGracePeriodSeconds: seconds}
}

// staticPod returns a pod of a manifest file, which restarts under the same UID.
func staticPod() *v1.Pod {
	pod := shutdowntest.Pod("static", regularPriority, 5)
	pod.Annotations = map[string]string{staticpod.SourceAnnotation: "file"}
	return pod
}

// list returns its arguments as a slice.
func list(pods ...*v1.Pod) []*v1.Pod { return pods }

// granted returns the seconds that a plan grants each pod, by the name of the pod.
func granted(p plan.Plan) map[string]int64 {
	all := map[string]int64{}
	for _, b := range p.Buckets {
		for _, pod := range b.Pods {
			all[pod.Pod.Name] = pod.GrantedSeconds
		}
	}
	return all
}

// names returns the names of the pods in a report, in its order.
func names(r shutdown.Report) (all []string) {
	for _, pod := range r.Pods {
		all = append(all, pod.Name)
	}
	return all
}
