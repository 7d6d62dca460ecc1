// Package container stands in for the kubelet's package of this name. A fork copies only the files with
// kubegrace in their path (SERIES.md). The other files declare just what those need.
package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// ContainerID is the ID of a container or a sandbox, with the name of its runtime.
type ContainerID struct{ Type, ID string }

// String formats the ID as statuses do.
func (c *ContainerID) String() string { return c.Type + "://" + c.ID }

// Container is a container or a sandbox.
type Container struct {
	ID   ContainerID
	Name string
}

// Pod lists the running containers and sandboxes of a pod.
type Pod struct {
	ID                    types.UID
	Name, Namespace       string
	Containers, Sandboxes []*Container
}

// PodStatus is the status of a pod in the runtime.
type PodStatus struct{ IPs []string }

// Runtime stands in for the kubelet's interface to the container runtime, whose methods are not used here.
type Runtime interface{ Type() string }

// CommandRunner runs a command in a container.
type CommandRunner interface {
	RunInContainer(ctx context.Context, id ContainerID, cmd []string, timeout time.Duration) ([]byte, error)
}

// HandlerRunner runs a lifecycle hook.
type HandlerRunner interface {
	Run(ctx context.Context, containerID ContainerID, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error)
}

// SyncAction is an action of a sync.
type SyncAction string

// The actions of a kill.
const (
	KillContainer  SyncAction = "KillContainer"
	KillPodSandbox SyncAction = "KillPodSandbox"
)

// The errors of failed actions.
var (
	ErrKillContainer  = errors.New("KillContainerError")
	ErrKillPodSandbox = errors.New("KillPodSandboxError")
)

// SyncResult is the result of one action of a sync.
type SyncResult struct {
	Action  SyncAction
	Target  any
	Error   error
	Message string
}

// NewSyncResult returns the result of a successful action.
func NewSyncResult(action SyncAction, target any) *SyncResult {
	return &SyncResult{Action: action, Target: target}
}

// Fail sets the error of a failed action.
func (r *SyncResult) Fail(err error, msg string) { r.Error, r.Message = err, msg }

// PodSyncResult has the results of all actions of a sync.
type PodSyncResult struct {
	SyncResults []*SyncResult
	SyncError   error
}

// AddSyncResult adds results.
func (p *PodSyncResult) AddSyncResult(result ...*SyncResult) {
	p.SyncResults = append(p.SyncResults, result...)
}

// Error aggregates the errors of the failed actions.
func (p *PodSyncResult) Error() error {
	var errs []error
	for _, r := range p.SyncResults {
		if r.Error != nil {
			errs = append(errs, fmt.Errorf("failed to %q for %q with %w: %q", r.Action, r.Target, r.Error, r.Message))
		}
	}
	return utilerrors.NewAggregate(errs)
}
