package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// checkPeer returns an error unless the connected process runs as root or as this process's user
// (SO_PEERCRED in unix(7)).
func checkPeer(host *net.UnixConn) error {
	raw, err := host.SyscallConn()
	if err != nil {
		return err
	}
	var peer *syscall.Ucred
	var optionErr error
	err = raw.Control(func(descriptor uintptr) {
		peer, optionErr = syscall.GetsockoptUcred(int(descriptor), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err := errors.Join(err, optionErr); err != nil {
		return fmt.Errorf("read the user of the connection: %w", err)
	}
	if peer.Uid != 0 && int(peer.Uid) != os.Geteuid() {
		return fmt.Errorf("user %d may not shut the node down", peer.Uid)
	}
	return nil
}
