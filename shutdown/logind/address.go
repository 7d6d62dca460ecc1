//go:build linux

package logind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/godbus/dbus/v5"
)

// systemBus is the default address of the system bus (D-Bus specification, "Well-known Message Bus
// Instances"). The second path is that of the same socket on hosts without /var/run.
const systemBus = "unix:path=/var/run/dbus/system_bus_socket;unix:path=/run/dbus/system_bus_socket"

// errNoUnixAddress is the error of an address without a unix socket. Only unix sockets pass file
// descriptors, and logind's inhibitor lock is one.
var errNoUnixAddress = errors.New("the address names no unix socket")

// dialSocket tries the sockets of a D-Bus address in order, and returns the first connection that succeeds, or the
// error of the last socket. An empty address means the system bus.
func dialSocket(ctx context.Context, address string) (*net.UnixConn, error) {
	address = cmp.Or(address, os.Getenv("DBUS_SYSTEM_BUS_ADDRESS"), systemBus)
	var failed error // of the last socket so far
	for part := range strings.SplitSeq(address, ";") {
		name, err := socketName(part)
		if err != nil {
			failed = fmt.Errorf("%w: %q", err, address)
			continue
		}
		connected, err := new(net.Dialer).DialContext(ctx, "unix", name)
		if err == nil {
			return connected.(*net.UnixConn), nil // the network is "unix"
		}
		failed = err
	}
	return nil, fmt.Errorf("connect to the system bus: %w", failed)
}

// socketName returns the path of the socket in one D-Bus address, such as unix:path=/run/bus. An abstract
// socket has no path; its name gets the prefix @, with which package net marks it.
func socketName(address string) (string, error) {
	pairs, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return "", errNoUnixAddress
	}
	for pair := range strings.SplitSeq(pairs, ",") {
		key, escaped, _ := strings.Cut(pair, "=")
		if key != "path" && key != "abstract" {
			continue
		}
		name, err := dbus.UnescapeBusAddressValue(escaped)
		if err != nil {
			return "", err
		}
		if key == "abstract" {
			name = "@" + name
		}
		return name, nil
	}
	return "", errNoUnixAddress
}
