// Package agent drains the pods of a container runtime when its host shuts down. It starts none.
//
// [Agent.Run] holds the host first. What is optional, or can come back, is opened beside that and again
// until it succeeds: the runtime, the API server, the kubelet's pods endpoint, the listeners. What
// is missing is in the log, on /healthz and in the status of the service manager.
//
// One goroutine, the loop, handles signals, requests that change something, and reports. Every
// goroutine has ended when Run returns. Run ends with an error if another agent uses the state folder, if pods
// of a demonstration could not be stopped, or if a second signal has ended the waiting for pods.
package agent
