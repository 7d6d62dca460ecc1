// Package agent drains the pods of a container runtime when its host shuts down. It starts none:
//
//	a, err := agent.New(agent.Options{Config: config, Runtime: runtime, Source: logindSource, View: v, Gates: gates})
//	if err != nil {
//		return err
//	}
//	return a.Run(ctx)
//
// Run holds the host first. What is optional, or can come back, is opened beside that and again
// until it succeeds: the runtime, the API server, the kubelet's pods endpoint, the listeners. What
// is missing is in the log, on /healthz and in the status of the service manager.
//
// # Concurrency properties
//
// One goroutine, the loop, handles signals, requests that change something, and reports. Every
// goroutine of the agent has ended when Run returns, except those of requests that hang.
//
// # Failure modes
//
// Run ends with an error if another agent uses the state folder, if pods of a demonstration could
// not be stopped, or if a second signal has ended the waiting for pods. Everything else is said, and
// the agent goes on.
//
// # Testing
//
// Most tests run in testing/synctest bubbles with the runtime of package embedded. Others use a real
// containerd and a real API server where there are any.
package agent
