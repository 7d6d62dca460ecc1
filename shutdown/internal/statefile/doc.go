// Package statefile reads the files of a state folder that somebody else may have written
// to, and keeps two agents from using one folder:
//
//	data, err := statefile.Read("/var/lib/kubelet/graceful_node_shutdown_progress")
//	lock, err := statefile.Lock(ctx, "/var/lib/kubelet")
//	...
//	err = lock.Close()
//
// # Concurrency properties
//
// All functions may be called from any goroutine and any process.
//
// # Failure modes
//
// A file that is no regular one (a FIFO, a device, a link), that is larger than [MaxSize],
// that belongs to neither this user nor root, or that others may write to is an error that
// says which of these it is, and nothing of it is read. The lock of a folder ends with the
// process that holds it. Where there are no such locks (Windows) none is taken.
//
// # Testing
//
// It needs nothing but a folder; [testing.T.TempDir] is one.
package statefile
