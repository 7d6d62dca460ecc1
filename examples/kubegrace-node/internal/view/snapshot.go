package view

import (
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// State is what a pod is doing.
type State string

const (
	// Running means that the pod was not told to stop.
	Running State = "Running"
	// Ending means that the pod was told to stop and is still stopping.
	Ending State = "Ending"
	// Gone means that the stop of the pod is over. If [Pod.Problem] is not "", the stop has failed.
	Gone State = "Gone"
)

// Snapshot is the state of all pods of the node at one moment.
type Snapshot struct {
	Now time.Time
	// Began is when the current shutdown began. It is zero if none is under way.
	Began time.Time
	// Allowed is how long the current shutdown may take at most.
	Allowed time.Duration
	// Pods are in the order in which they stop.
	Pods []Pod
}

// Pod is the state of one pod.
type Pod struct {
	Name   string // NAMESPACE/NAME
	Bucket int32  // the lowest priority of its bucket
	State  State
	// Containers is empty until the pod is told to stop.
	Containers []Container
	// Granted is the grace period of the stop in seconds.
	Granted int64
	// Deadline is when the containers that still run are killed. It is zero until the pod is told to stop.
	Deadline time.Time
	// Took is how long the stop took, or has taken so far.
	Took time.Duration
	// Problem says why the stop of the pod failed. It is "" if it did not fail.
	Problem string
}

// Container is the state of one container of a pod that was told to stop.
type Container struct {
	lifecycle.ContainerResult
	Sidecar  bool   // a restartable init container
	HookText string // describes its preStop hook to people; "" if it has none
	Signal   string // the stop signal, for example SIGTERM
}

// outcome returns the worst outcome of the containers, or "" while one is still stopping.
func (p Pod) outcome() lifecycle.Outcome {
	var result lifecycle.Result
	for _, c := range p.Containers {
		result.Containers = append(result.Containers, c.ContainerResult)
	}
	return result.Outcome()
}
