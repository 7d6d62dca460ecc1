// Package agent stops the pods of a container runtime, in order, when its host shuts down. It starts no pods.
//
// [Agent.Run] first takes the lock that delays the host's shutdown. Beside that it opens what is optional or
// can come back: the container runtime, the API server, the kubelet's pods endpoint, the listeners. It retries
// each until it succeeds. The log, /healthz and the status in the service manager name what is still missing.
//
// One goroutine, the loop, handles signals and the reports of shutdowns. All goroutines have ended when Run
// returns. Run returns an error if another agent uses the state folder, if something went wrong in a demonstration, or
// if a second signal ended the wait for the pods.
package agent
