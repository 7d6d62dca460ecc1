// Package apistatus tells the API server what a node shutdown does to the node and
// its pods: the [shutdown.Reporter] that an agent author would otherwise write.
//
//	func options(config *rest.Config, node string, opts shutdown.Options) (shutdown.Options, error) {
//		client, err := apistatus.NewClient(config) // a budget of its own
//		if err != nil {
//			return opts, err
//		}
//		reporter, err := apistatus.New(apistatus.Options{Client: client, NodeName: node})
//		if err != nil {
//			return opts, err // says all that is wrong with the options
//		}
//		opts.Reporter = reporter
//		return opts, nil
//	}
//
// The node: while it shuts down its Ready condition is False with the kubelet's
// reason and message, and GracefulNodeShutdownInProgress (KEP-5683) is True. Both
// are taken back when the shutdown is cancelled and after the next boot. An agent
// whose own loop writes the conditions of the node takes them from [NodeConditions],
// or its next heartbeat says Ready again.
//
// The pods: [Reporter.FlushPod] gives a pod its final status in one patch, as the
// kubelet's status manager writes it (KEP-3329: the phase together with
// DisruptionTarget), and deletes one with a deletion timestamp afterwards. The patch is
// made of what the pod says, without reading it first, and the pod's UID is its
// precondition. What only other writers know (addresses, readiness gates, PodScheduled)
// stays; phase, reason, message and the lists of containers' statuses are the node's to
// say. A container that has ended without anybody telling its exit code is written as
// the kubelet does it: terminated, 137, ContainerStatusUnknown. Of a static pod it is
// the mirror pod that gets the status; that one is read first, since only its
// annotations tell whose mirror it is.
//
// Services: [Reporter.MarkNotReady] makes a pod not ready before it is stopped, since
// a pod that its node ends has no deletion timestamp by which an EndpointSlice
// would know it (k/k#105780). [Reporter.RestoreReadiness] takes that back.
// [EndpointConditions] gives the conditions of an endpoint on its way out to those who
// write EndpointSlices themselves.
//
// It reads nodes and pods, patches nodes/status and pods/status, and deletes pods:
// what the API server lets a kubelet do with its own node.
//
// # Concurrency properties
//
// All methods of a [Reporter] may be called concurrently. None starts a goroutine, and
// each returns when its context ends. Pods that are handed in are only read.
//
// # Failure modes
//
// A method for a pod makes one attempt, and each of its requests has a time of its own
// ([Options.RequestTimeout]). client-go's own repetition of what is answered with
// Retry-After is off, so that a server that limits is heard at once: who calls decides
// when to try again, and finds in the error what the API server has said
// (k8s.io/apimachinery/pkg/api/errors: SuggestsClientDelay, IsForbidden and the like).
// None of these errors is final: API servers that are starting give 403 to everybody. A
// pod that is gone is acknowledged, be it that another one has its name: the API server
// answers 404, 422, which names metadata.uid, or 409, and then the pod is looked at.
// Where an answer was lost the call may be made again: it writes the same.
//
// [Reporter.PublishNode] decides by what it reads, with the node's version as a
// precondition, and tries again by itself: after 20 to 500 ms, or as long as the
// server asks for, until its context ends or the API server says no (400, 401, 403,
// 422). Its attempts have a second, and then twice as much each, at first a quarter of
// what its context leaves at most: one that is stuck does not cost all of the time.
//
// # Testing
//
// client-go's fake clientset works, in bubbles of testing/synctest as well; it minds
// neither UIDs nor versions.
package apistatus
