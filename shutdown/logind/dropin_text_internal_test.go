//go:build linux

package logind

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindconf"
)

// The drop-in has the requested delay in whole seconds, rounded up: otherwise the limit would be shorter than the delay. The
// longest duration becomes 9223372037 s, which logind accepts.
func TestTheDropInRoundsUpToSeconds(t *testing.T) {
	for requested, seconds := range map[time.Duration]string{
		0: "=0\n", 1: "=1\n", time.Second: "=1\n", time.Second + 1: "=2\n", 400 * time.Millisecond: "=1\n", logindconf.Unlimited: "=9223372037\n",
	} {
		text := string(dropInText(requested))
		require.True(t, strings.HasPrefix(text, ownedMark), "the drop-in is recognized")
		require.True(t, strings.HasSuffix(text, "[Login]\nInhibitDelayMaxSec"+seconds), text)
	}
}
