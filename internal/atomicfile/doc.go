// Package atomicfile replaces a small file atomically: a reader, and an agent that restarts
// after a power cut, finds either the old content or the new one.
//
//	err := atomicfile.Write("/var/lib/kubelet/graceful_node_shutdown_state", data)
//
// # Concurrency properties
//
// All functions may be called concurrently, by several processes and for the same path: each call
// has its own temporary file, and the last rename wins.
//
// # Failure modes
//
// If a step before the rename fails, the old content stays, and the temporary file is
// removed. After the rename the new content is in place, even if Write returns an error
// because the sync of the directory failed; only a power cut could then bring back the
// old content. A process that is killed within Write may leave a file .tmp-NAME followed
// by digits.
//
// # Testing
//
// A test needs only a directory, such as [testing.T.TempDir].
package atomicfile
