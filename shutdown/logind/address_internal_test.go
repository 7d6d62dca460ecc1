//go:build linux

package logind

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A D-Bus address has a list of keys and values. Only the keys path and abstract name a unix socket; values may be escaped.
func TestSocketNameReadsPathAndAbstract(t *testing.T) {
	for address, want := range map[string]string{
		"unix:path=/run/bus":             "/run/bus",
		"unix:guid=1,path=/run/bus":      "/run/bus",
		"unix:path=/run/my%20bus":        "/run/my bus",
		"unix:abstract=/tmp/dbus,guid=1": "@/tmp/dbus",
	} {
		name, err := socketName(address)
		require.NoError(t, err, address)
		require.Equal(t, want, name, address)
	}
	for _, address := range []string{"", "/run/bus", "tcp:host=localhost,port=1", "unix:", "unix:tmpdir=/tmp", "unix:guid=1"} {
		_, err := socketName(address)
		require.ErrorIs(t, err, errNoUnixAddress, address)
	}
	_, err := socketName("unix:path=%zz")
	require.Error(t, err)
}

// An address has two parts, and neither names a unix socket. The error has the whole address.
func TestAnAddressWithoutAUnixSocketIsAnError(t *testing.T) {
	const address = "tcp:host=localhost,port=1;unix:tmpdir=/tmp"
	_, err := dialSocket(t.Context(), address)
	require.ErrorIs(t, err, errNoUnixAddress)
	require.ErrorContains(t, err, address)
}
