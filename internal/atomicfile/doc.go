// Package atomicfile replaces a small file atomically: a reader, even after a power failure, finds either the
// old content or the new one.
//
//	err := atomicfile.Write("/var/lib/kubelet/graceful_node_shutdown_state", data)
//
// # Failures
//
//	what fails                  what happens
//	writing or renaming         the old content stays, and the temporary file is removed
//	syncing the directory       Write returns an error; the new content is in place, but a power
//	                              failure may restore the old one
//	the process is killed       a file .tmp-NAME followed by digits may be left over
//
// # Concurrency
//
// All functions may be called concurrently, by several processes and for the same path. The last rename wins.
package atomicfile
