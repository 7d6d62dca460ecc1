//go:build linux

package logind

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// Only regular files are read, because reading a pipe may block.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	for mode, read := range map[fs.FileMode]bool{0o644: true, 0o644 | fs.ModeNamedPipe: false, 0o644 | fs.ModeDevice: false} {
		host := fstest.MapFS{"logind.conf": {Data: []byte("[Login]\nInhibitDelayMaxSec=7\n"), Mode: mode}}
		_, ok := delayIn(host, "logind.conf")
		require.Equal(t, read, ok, mode)
	}
}

// A signal with an invalid body is no event.
func TestInvalidBodiesAreNoEvents(t *testing.T) {
	for _, body := range [][]any{nil, {}, {"true"}, {1, true}} {
		active, kind, ok := parsePrepare(body)
		require.False(t, ok, "%v", body)
		require.False(t, active, "%v", body)
		require.Zero(t, kind, "%v", body)
	}
}
