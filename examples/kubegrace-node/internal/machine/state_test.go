package machine

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A user may not read a file. It counts as not seen: the reason does not repeat the name of the file, and the way out is to be root.
func TestAFileThatOnlyRootMayRead(t *testing.T) {
	var s State
	const noOtherWayOut = ""
	s.addUnseen("/etc/a.conf", &fs.PathError{Op: "open", Path: "/etc/a.conf", Err: syscall.EACCES}, noOtherWayOut)
	require.Equal(t, []Unseen{{What: "/etc/a.conf", Why: "permission denied", WayOut: "run it as root"}}, s.NotSeen)
}

// A kubelet has flags with a value in the same word and in the next one, and flags that status does not know, such as
// --fail-swap-on, which has no value.
func TestFlagsOfAKubelet(t *testing.T) {
	words := []string{"/usr/bin/kubelet", "-v", "2", "--fail-swap-on", "--config", "/c", "--root-dir", "/r", "--feature-gates=A=true,B=false", "--hostname-override=n"}
	kubelet, isKubelet := parseCommandLine(words)
	require.True(t, isKubelet)
	require.Equal(t, Kubelet{Program: "kubelet", ConfigFile: "/c", HostName: "n", gates: map[string]bool{"A": true, "B": false}}, kubelet)
}
