package socket

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer returns an error unless the other side of a connection is root or the user of
// this process.
func checkPeer(conn net.Conn) error {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("%T is no connection of this machine", conn)
	}
	raw, err := local.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var optionErr error
	err = raw.Control(func(fd uintptr) { peer, optionErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, optionErr); err != nil {
		return fmt.Errorf("failed to ask who has connected: %w", err)
	}
	if uid := int(peer.Uid); uid != 0 && uid != os.Geteuid() {
		return fmt.Errorf("user %d is neither root nor the agent's own", uid)
	}
	return nil
}
