//go:build go1.25

package virtualkubelet_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// deleted returns a copy of a pod as the API server has it after a deletion at a time, with a grace period in seconds.
func deleted(pod *v1.Pod, seconds int64, at time.Time) *v1.Pod {
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = ptr.To(metav1.NewTime(at.Add(time.Duration(seconds) * second)))
	pod.DeletionGracePeriodSeconds = &seconds
	return pod
}

// podOf returns a pod with restart policy Never and a grace period of 30 s.
func podOf(containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
		Spec:       v1.PodSpec{NodeName: "node", RestartPolicy: v1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To(int64(30)), Containers: containers},
	}
}

// podNamed returns the pod of podOf with another name, which is also its UID.
func podNamed(name string, containers ...v1.Container) *v1.Pod {
	pod := podOf(containers...)
	pod.Name, pod.UID = name, types.UID(name)
	return pod
}

// container returns a container without a hook.
func container(name string) v1.Container { return v1.Container{Name: name, Image: "image"} }

// sidecar returns a restartable init container.
func sidecar(name string) v1.Container {
	return v1.Container{Name: name, RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}
}

// withSleepHook returns a container whose preStop hook sleeps for seconds.
func withSleepHook(name string, seconds int64) v1.Container {
	hook := &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: seconds}}
	return v1.Container{Name: name, Lifecycle: &v1.Lifecycle{PreStop: hook}}
}

// withExecHook returns a container whose preStop hook runs a command.
func withExecHook(name string) v1.Container {
	hook := &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"drain"}}}
	return v1.Container{Name: name, Lifecycle: &v1.Lifecycle{PreStop: hook}}
}

// conditionOf returns a condition, and fails the test if the status does not have it.
func conditionOf(t require.TestingT, status v1.PodStatus, kind v1.PodConditionType) v1.PodCondition {
	i := slices.IndexFunc(status.Conditions, func(c v1.PodCondition) bool { return c.Type == kind })
	require.GreaterOrEqual(t, i, 0, kind)
	return status.Conditions[i]
}

// terminatedState returns the terminated state of a container, and fails the test if it has none.
func terminatedState(t require.TestingT, status v1.PodStatus, name string) v1.ContainerStateTerminated {
	all := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	i := slices.IndexFunc(all, func(s v1.ContainerStatus) bool { return s.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	require.NotNil(t, all[i].State.Terminated, name)
	return *all[i].State.Terminated
}
