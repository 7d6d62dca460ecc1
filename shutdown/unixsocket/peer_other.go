//go:build !linux

package unixsocket

import "net"

// checkPeer accepts everybody who could open the socket: its mode decides.
func checkPeer(*net.UnixConn) error { return nil }
