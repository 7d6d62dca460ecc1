package view

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// State is what a pod is doing, as a whole.
type State string

const (
	// Starting means that its containers are being started.
	Starting State = "Starting"
	// Running means that its containers run, or some of them.
	Running State = "Running"
	// Waiting means that one of its containers has ended and is started again after a pause.
	Waiting State = "Waiting"
	// Finished means that all its containers have ended by themselves.
	Finished State = "Finished"
	// NotStarted means that it does not run: it could not be started, or the node
	// was shutting down. [Pod.Problem] says which.
	NotStarted State = "NotStarted"
	// Ending means that it was told to stop and something of it still runs.
	Ending State = "Ending"
	// Gone means that it was told to stop, and nothing more is done about it.
	Gone State = "Gone"
	// Stopped means the same of a pod that no shutdown has told to stop.
	Stopped State = "Stopped"
)

// Snapshot is what is known of the node's pods at one moment.
type Snapshot struct {
	Now time.Time
	// Began is when the shutdown began; zero: none has.
	Began time.Time
	// Allowed is how long it may take at most.
	Allowed time.Duration
	// Cancelled says that the host called the shutdown off.
	Cancelled bool
	// Abandoned says that the agent left before the shutdown was done.
	Abandoned bool
	// Unacknowledged names the pods whose final status the API server has not
	// accepted, as NAMESPACE/NAME; nil too where there is no API server.
	Unacknowledged []string
	// Unheard is why the API server does not know of the shutdown; "" if it does, and
	// where there is none.
	Unheard string
	// Pods are in the order in which they stop.
	Pods []Pod
}

// Pod is what is known of one pod.
type Pod struct {
	Name     string // NAMESPACE/NAME
	Priority int32
	Bucket   int32 // the lowest priority of its bucket
	State    State
	// Finished says that it had ended by itself before it was told to stop.
	Finished bool
	// Containers is empty until the pod was told to stop.
	Containers []Container
	// Granted, in seconds, is what the pod was given to stop.
	Granted int64
	// Deadline is when what still runs is killed; zero until it was told to stop.
	Deadline time.Time
	// Took is how long the stop took until now.
	Took time.Duration
	// Problem is why the pod did not start, or could not be stopped; else "".
	Problem string
}

// Container is what is known of one container of a pod that was told to stop.
type Container struct {
	lifecycle.ContainerResult
	Sidecar  bool   // a restartable init container
	HookText string // what its preStop hook does, "" if it has none
	Signal   string // its stop signal
}

// outcome is the worst of the containers' outcomes, "" while one is pending.
func (p Pod) outcome() lifecycle.Outcome {
	var result lifecycle.Result
	for _, c := range p.Containers {
		result.Containers = append(result.Containers, c.ContainerResult)
	}
	return result.Outcome()
}

// buckets is how many buckets have pods.
func (s Snapshot) buckets() int {
	var seen []int32
	for _, p := range s.Pods {
		if !slices.Contains(seen, p.Bucket) {
			seen = append(seen, p.Bucket)
		}
	}
	return len(seen)
}

// count is how many pods are in one of the states.
func (s Snapshot) count(states ...State) int {
	n := 0
	for _, p := range s.Pods {
		if slices.Contains(states, p.State) {
			n++
		}
	}
	return n
}
