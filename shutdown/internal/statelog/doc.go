// Package statelog keeps what an agent knows of the shutdown of its node in a file, for the next agent.
//
// The file is a log of JSON lines. Its first line has the version and the boot, and each further one an
// entity: a [node.Shutdown] or a [node.Pod]. The last line of an entity counts. [Log.Append] adds lines,
// and [Log.Begin] replaces the file. A line that the death of the agent has torn is ignored. Beside the
// log is the kubelet's own file, with the times of the last shutdown.
//
// All methods may be called concurrently. Nobody waits for a disk who does not want to: one goroutine
// writes the log, in the order of the calls, and another one syncs it; they run while there is something
// to do, and [Log.Close] ends them. What could not be written is written with what follows.
//
// A file that is not regular (a FIFO, a device, a link), is larger than [MaxSize], belongs to neither
// this user nor root, or may be written to by others is not read; the error says which of these it is.
// The lock of a folder ends with its process. On systems without such locks (Windows, Solaris) none is
// taken, and the owner and the mode of a file mean nothing.
//
// For tests, [Options.Boot] replaces the machine, and [Options.Before] makes the disk fail or hang.
package statelog
