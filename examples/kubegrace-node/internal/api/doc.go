// Package api defines the JSON that the agent answers to programs on its socket, and prints
// with -o json:
//
//	GET  /status   a [Status]: whether the agent holds the shutdown, and what the pods would lose
//	GET  /plan     a nodeplan.Document: what a shutdown would do if it began now
//	GET  /report   a [Report] of the current shutdown, or of the last one
//	POST /drain    ends all pods, as for a shutdown, and returns the Report
//	POST /undrain  takes a drain back, and returns a [Meta]
//
// Each answer has apiVersion and kind. The version changes when a field is removed or
// changes its meaning; new fields do not change it. Times are RFC 3339 with fractions,
// durations are in seconds, and unknown values are left out. A request that fails has a
// status of 400 or more and an [Error]. The types are plain values, and conversions cannot fail.
package api
