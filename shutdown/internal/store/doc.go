// Package store keeps the state files of an agent in one folder: the record of a node shutdown,
// and the kubelet's file with its times.
//
// All methods may be called concurrently. Each file has one goroutine that writes it, which runs
// while there is something to write; [Store.Close] ends it. Of the writes that wait for their turn
// only the newest is made, so that a disk that hangs holds one write of each file and no more. It
// delays those who wait for a future, and nobody else.
//
// A file that is not regular (a FIFO, a device, a link), is larger than [MaxSize], belongs to neither
// this user nor root, or may be written to by others is not read; the error says which of these it
// is. The lock of a folder ends with its process. On systems without such locks (Windows, Solaris)
// none is taken, and the owner and the mode of a file mean nothing.
//
// For tests, [Options.Boot], [Options.Read] and [Options.Write] replace the machine and the disk.
package store
