// Package statefile reads the files of a state folder to which other users may have written, and
// locks the folder so that only one agent uses it:
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
// Read returns an error, and no content, for a file that is not regular (a FIFO, a device, a
// link), is larger than [MaxSize], belongs to neither this user nor root, or may be written to by
// others. The error says which of these it is. The lock of a folder ends with the process that
// holds it. On systems without such locks (Windows) none is taken.
//
// # Testing
//
// The tests need only a folder, such as that of [testing.T.TempDir].
package statefile
