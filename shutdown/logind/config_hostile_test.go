//go:build linux

package logind

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A signal with an invalid body is no event.
func TestInvalidBodiesAreNoEvents(t *testing.T) {
	for _, body := range [][]any{nil, {}, {"true"}, {1, true}} {
		active, kind, ok := parsePrepare(body)
		require.False(t, ok, "%v", body)
		require.False(t, active, "%v", body)
		require.Zero(t, kind, "%v", body)
	}
}
