package podinfo

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/prometheus/procfs"
)

// checkRootAnswers returns an error unless the process at the other end of a connection runs on this machine
// and as root, as the kubelet does. Any user can listen on the kubelet's read-only port while the kubelet is
// stopped, and could give false priorities. A process of the user who runs this program is accepted too: that
// user gains nothing by it. Call checkRootAnswers when the answer has begun: the other process then has its
// socket.
func checkRootAnswers(conn net.Conn) error {
	here, isTCP := conn.LocalAddr().(*net.TCPAddr)
	there, isTCPToo := conn.RemoteAddr().(*net.TCPAddr)
	if !isTCP || !isTCPToo {
		return fmt.Errorf("a connection over %s is not one to a kubelet", conn.RemoteAddr().Network())
	}
	sockets, err := tcpSockets()
	if err != nil {
		return fmt.Errorf("failed to find out who answers on port %d: %w", there.Port, err)
	}
	for _, socket := range sockets {
		isAtOtherEnd := socket.LocalAddr.Equal(there.IP) && socket.LocalPort == uint64(there.Port) && //nolint:gosec // a port is not negative
			socket.RemAddr.Equal(here.IP) && socket.RemPort == uint64(here.Port) //nolint:gosec // the same
		// A socket without an inode no longer belongs to a process. The kernel's table shows it as root's, so
		// it proves nothing.
		if !isAtOtherEnd || socket.Inode == 0 {
			continue
		}
		if socket.UID != 0 && socket.UID != uint64(os.Getuid()) { //nolint:gosec // a user is not negative
			return fmt.Errorf("user %d, not root, answers on port %d: this is not the kubelet, and its list of pods is not used", socket.UID, there.Port)
		}
		return nil
	}
	return fmt.Errorf("no process of this machine is known to answer on port %d, so its list of pods is not used", there.Port)
}

// tcpSockets returns the TCP sockets of this machine. A kernel without IPv6 has no table for it, which is no
// error.
func tcpSockets() (procfs.NetTCP, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, err
	}
	sockets, err := proc.NetTCP() //nolint:staticcheck // netlink, which is recommended instead, needs one more library
	if err != nil {
		return nil, err
	}
	sockets6, err := proc.NetTCP6() //nolint:staticcheck // the same
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return append(sockets, sockets6...), nil
}
