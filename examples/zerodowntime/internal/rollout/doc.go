// Package rollout replaces all pods of a small service one after the other, as a Deployment
// does, while clients use the service, and measures what the clients notice:
//
//	settings := rollout.Settings{Backend: []string{"./zerodowntime", "backend"}, Replicas: 3}
//	for _, scenario := range rollout.Scenarios(settings) {
//		result, err := rollout.Run(ctx, settings, scenario, nil)
//	}
//
// The pods are processes, which a [lifecycle.Terminator] stops. Their endpoints have the
// conditions that [apistatus.EndpointConditions] returns, and the proxy learns of them with a
// delay.
//
// # Concurrency properties
//
// [Run] may be called concurrently. The calls share nothing.
//
// # Failure modes
//
// When its context ends, Run kills its processes, closes its port and returns the cause. A
// backend that does not start ends the run with an error.
//
// # Testing
//
// The tests run all scenarios with short times and their own binary as the backend.
package rollout
