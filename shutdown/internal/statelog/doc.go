// Package statelog stores what an agent knows about the shutdown of its node, for the next agent.
//
// The log is a file of JSON lines. The first line has the version and the boot ID. Every other line has an
// entity: a [node.Shutdown] or a [node.Pod]. The last line of each entity counts. [Log.Append] adds lines,
// and [Log.Begin] replaces the file. An incomplete last line is ignored. The folder also has the kubelet's own
// file with the times of the last shutdown.
//
// Methods do not block on the disk unless they say so: one goroutine writes, in the order of the calls,
// and another one syncs. Both run only while there is work. All methods may be called concurrently.
//
// A file is not read if it is not regular, is larger than 256 MiB, belongs to neither this user nor
// root, or is writable by others. On Windows and Solaris the folder is not locked, and owners and modes
// are not checked.
//
// For tests, [Options.Boot] replaces the machine, and [Options.Before] makes the disk fail or hang.
package statelog
