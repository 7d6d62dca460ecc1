// Package atomicfile replaces a small file as a whole, so that a reader, and an
// agent that comes back after a power cut, finds the old content or the new one
// and nothing in between:
//
//	err := atomicfile.Write("/var/lib/kubelet/graceful_node_shutdown_state", data)
//
// # Concurrency properties
//
// Write may be called from any goroutine and any process, for one path too: each
// call has a temporary file of its own and the last rename wins.
//
// # Failure modes
//
// The old content stays when a step before the rename fails, and the temporary
// file is removed. Once renamed, the new content is in place even if the sync of
// the directory, which only makes it survive a power cut, then fails. A process
// that is killed within Write may leave a file .tmp-NAME with digits behind.
//
// # Testing
//
// It needs nothing but a directory; [testing.T.TempDir] is one.
package atomicfile
