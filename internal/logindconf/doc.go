// Package logindconf finds the files of systemd-logind that set how long a lock may delay a shutdown, and reads time spans
// as systemd does. Its functions may be called concurrently, and fail for no file: what cannot be read is a [File] with an error.
package logindconf
