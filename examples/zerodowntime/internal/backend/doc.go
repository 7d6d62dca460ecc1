// Package backend is a small web server of the usual kind: it answers requests, some of
// which take their time, and echoes the messages of websockets. On SIGTERM it closes its
// listener at once, and ends when the requests that it has accepted are answered:
//
//	stop, cancel := signal.NotifyContext(ctx, syscall.SIGTERM)
//	defer cancel()
//	err := backend.Run(stop, backend.Options{}, os.Stdin, os.Stdout)
//
// # Concurrency properties
//
// Run may be called several times; the calls share nothing.
//
// # Failure modes
//
// When its standard input ends, the program that started the backend has ended. Run then
// returns [ErrParentGone] at once, so that no backend outlives that program.
//
// # Testing
//
// The tests of package rollout run backends as processes.
package backend
