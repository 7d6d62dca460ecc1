package command_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/command"
)

// The first line names a single rolling update and a single pod in the singular.
func TestFirstLineSaysHowManyRollingUpdatesRun(t *testing.T) {
	for want, args := range map[string][]string{
		"1 rolling update of 3 pods each;":  {"--scenario", "sleep"},
		"2 rolling updates of 1 pod each;":  {"--scenario", "no-sleep,sleep", "--backends", "1"},
		"6 rolling updates of 3 pods each;": {},
	} {
		interrupted, interrupt := context.WithCancel(t.Context())
		interrupt() // before a backend is started
		var out, log bytes.Buffer
		c := command.New(&out, &log)
		c.SetArgs(args)
		require.ErrorIs(t, c.ExecuteContext(interrupted), command.ErrInterrupted)
		require.Contains(t, log.String(), want)
	}
}
