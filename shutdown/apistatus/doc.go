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
// The pods: each gets its final status in one update, as the kubelet's status
// manager writes it (KEP-3329: the phase together with DisruptionTarget), on top of
// what the API server has. Succeeded is kept, a pod that Failed for a reason of its
// own keeps that, and what other writers know stays. A pod with a deletion timestamp
// is deleted then; of a static pod it is the mirror pod that gets the status.
//
// Services: [Reporter.MarkReady] makes pods not ready before they are stopped, since
// a pod that its node ends has no deletion timestamp by which an EndpointSlice
// would know it (k/k#105780). [EndpointConditions] gives the conditions of an
// endpoint on its way out to those who write EndpointSlices themselves.
//
// It reads nodes and pods, patches nodes/status and pods/status, and deletes pods:
// what the API server lets a kubelet do with its own node.
//
// # Concurrency properties
//
// All methods of a [Reporter] may be called concurrently. A call writes at most
// [Options.Workers] pods at the same time, returns soon after its context has
// ended, and leaves no goroutine behind. Pods that are handed in are only read.
//
// # Failure modes
//
// What another writer, a busy or dead server or the network is in the way of is
// tried again until the context ends, with a jittered backoff of 20 to 500 ms;
// every attempt begins with what is there, so that an answer that was lost costs a
// request and nothing else. An attempt has a bound of its own that doubles, so that
// one that is stuck does not cost all of the time. A refusal (400, 401, 403, 422) is
// final. A pod in difficulties makes room for others between its attempts. The
// error is a *[shutdown.UnflushedError] that names every pod that was not
// acknowledged, and each kind of reason once.
//
// A decision holds for what was read: patches carry the UID and the version of the
// object, and a conflict is another attempt.
//
// # Testing
//
// Package apistatustest has an API server over TCP that can be slowed, made to
// conflict, to time out and to die. client-go's fake clientset works too, in
// bubbles of testing/synctest as well; it minds neither UIDs nor versions.
package apistatus
