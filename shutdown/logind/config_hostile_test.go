//go:build linux

package logind

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// What is no regular file is not read: of a pipe the reading would never end.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	for mode, read := range map[fs.FileMode]bool{0o644: true, 0o644 | fs.ModeNamedPipe: false, 0o644 | fs.ModeDevice: false} {
		host := fstest.MapFS{"logind.conf": {Data: []byte("[Login]\nInhibitDelayMaxSec=7\n"), Mode: mode}}
		_, ok := delayIn(host, "logind.conf")
		require.Equal(t, read, ok, mode)
	}
}

// A body that is not as documented announces nothing, neither a shutdown nor its end.
func TestBodiesThatAnnounceNothing(t *testing.T) {
	for _, body := range [][]any{nil, {}, {"true"}, {1, true}} {
		a, ok := parseAnnouncement(body)
		require.False(t, ok, "%v", body)
		require.Zero(t, a, "%v", body)
	}
}
