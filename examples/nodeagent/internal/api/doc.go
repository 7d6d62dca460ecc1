// Package api is what the agent says to programs, as JSON: on its socket, beside its
// metrics, and with -o json.
//
//	GET  /plan    a [Plan]: what a shutdown would do if it began now
//	GET  /pods    a [PodList]: what the pods are doing
//	GET  /report  a [Report]: of the shutdown that is under way, or of the last one
//
// and on the socket alone, which root and the agent's own user may speak to:
//
//	POST /drain                                 stops all pods, and gives the Report
//	POST /stop?pod=NAMESPACE/NAME[&seconds=N]   stops one, and gives its [Pod]
//
// Each answer has apiVersion and kind. The version changes when a field goes away or
// means something else; fields may be added without. Times are RFC 3339 with fractions,
// spans are in seconds, and what is not known is left out. A request that fails has a
// status of 400 or more and an [Error].
//
// # Concurrency properties
//
// Values only.
//
// # Failure modes
//
// The functions have a result for every input.
//
// # Testing
//
// The golden files of packages command and view pin the form.
package api
