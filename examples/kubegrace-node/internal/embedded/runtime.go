package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// Runtime simulates pods in the agent's process. Make one with [New].
type Runtime struct {
	*lifecycletest.Runtime

	mu   sync.Mutex // guards pods; never held while anything waits
	pods []*v1.Pod  // those whose sandbox has not been stopped
}

// New makes a runtime in which the sidecars and main containers of the pods run. Plain init containers count
// as ended. A container's script, an annotation of its pod ([ScriptPrefix]), says how the container reacts to its
// stop. The error names every script that cannot be parsed.
func New(pods []*v1.Pod) (*Runtime, error) {
	r := &Runtime{Runtime: lifecycletest.NewRuntime()}
	var errs []error
	for _, pod := range pods {
		pod = pod.DeepCopy()
		pod.Status = v1.PodStatus{Phase: v1.PodRunning}
		for i, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			isInit := i < len(pod.Spec.InitContainers)
			isSidecar := isInit && c.RestartPolicy != nil
			if isInit && !isSidecar {
				continue // it counts as ended
			}
			script, err := scriptOf(pod, c.Name)
			errs = append(errs, err)
			r.Start(pod, c.Name, fmt.Sprintf("%s/%s", pod.UID, c.Name), script)
		}
		r.pods = append(r.pods, pod)
	}
	return r, errors.Join(errs...)
}

// Pods returns the pods whose sandbox has not been stopped.
func (r *Runtime) Pods(context.Context) ([]*v1.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.pods), nil
}

// PodStatus returns nil: no API server has the pods.
func (r *Runtime) PodStatus(context.Context, *v1.Pod) *v1.PodStatus { return nil }

// StopPodSandbox removes a pod from the list.
func (r *Runtime) StopPodSandbox(_ context.Context, pod *v1.Pod) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods = slices.DeleteFunc(slices.Clone(r.pods), func(p *v1.Pod) bool { return p.UID == pod.UID })
	return nil
}

// Close does nothing. The containers end with the process.
func (r *Runtime) Close() error { return nil }
