package embedded

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

var _ podruntime.StatusReader = (*Runtime)(nil)

// Exit code and reasons of containers, as container runtimes report them.
const (
	killedCode      = 128 + 9 // ended by SIGKILL
	reasonCompleted = "Completed"
	reasonError     = "Error"
)

// ContainerStatus returns the status of a container. The exit code is 137 if it was
// killed, else 0.
func (r *Runtime) ContainerStatus(_ context.Context, containerID string) (v1.ContainerStatus, error) {
	r.mu.Lock()
	started, known := r.started[containerID]
	r.mu.Unlock()
	if !known {
		return v1.ContainerStatus{}, fmt.Errorf("failed to find container %q: %w", containerID, lifecycle.ErrContainerNotFound)
	}
	status := v1.ContainerStatus{ContainerID: "embedded://" + containerID}
	if exit, ended := r.exit(containerID, started); ended {
		status.State.Terminated = terminated(exit, started)
		status.State.Terminated.ContainerID = status.ContainerID
		return status, nil
	}
	status.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}
	return status, nil
}

// exit returns the exit of a container. started tells it from the exit of an earlier
// container with the same ID.
func (r *Runtime) exit(id string, started time.Time) (lifecycletest.Exit, bool) {
	for _, exit := range slices.Backward(r.Exits()) {
		if exit.ID == id {
			return exit, !exit.At.Before(started)
		}
	}
	return lifecycletest.Exit{}, false
}

func terminated(exit lifecycletest.Exit, started time.Time) *v1.ContainerStateTerminated {
	ended := &v1.ContainerStateTerminated{
		Reason:     reasonCompleted,
		StartedAt:  metav1.NewTime(started),
		FinishedAt: metav1.NewTime(exit.At),
	}
	if exit.By == lifecycletest.ByKill {
		ended.ExitCode, ended.Reason = killedCode, reasonError
	}
	return ended
}
