// Package api defines the JSON that the agent answers on its socket, and that commands print with -o json:
//
//	GET  /status   a [Status]: whether the agent delays the shutdown, and what the pods would lose
//	GET  /plan     a nodeplan.Document: what a shutdown would do if it began now
//	GET  /report   a [Report] of the current shutdown, or of the last one
//	POST /drain    stops all pods as a shutdown does, and returns the Report when they have ended
//	POST /undrain  withdraws a drain, and returns a [Meta]
//
// Each answer has apiVersion and kind. The version changes when a field is removed or
// changes its meaning; new fields do not change it. Times are RFC 3339 with fractions,
// durations are in seconds, and unknown values are left out. The answer to a failed request has an HTTP
// status of 400 or more and an [Error]. The types are plain values, and conversions cannot fail.
package api
