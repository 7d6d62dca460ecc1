package machine

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A user may not read a file. The reason does not repeat the name of the file, and the way out is to be root.
func TestAFileThatOnlyRootMayRead(t *testing.T) {
	var s State
	s.miss("/etc/a.conf", &fs.PathError{Op: "open", Path: "/etc/a.conf", Err: syscall.EACCES}, "")
	require.Equal(t, []Unseen{{What: "/etc/a.conf", Why: "permission denied", WayOut: "run it as root"}}, s.NotSeen)
}
