package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLogsInJSON(t *testing.T) {
	var out bytes.Buffer
	logger := newLogger(&out, logJSON, 1)
	logger.V(1).Info("said", "pod", "web")
	logger.V(2).Info("not said")
	logger.Error(errors.New("broken"), "failed")
	decoder := json.NewDecoder(&out)
	var line map[string]any
	require.NoError(t, decoder.Decode(&line))
	require.Contains(t, line, "time")
	require.EqualValues(t, 1, line["v"])
	line = nil
	require.NoError(t, decoder.Decode(&line))
	require.Equal(t, "broken", line["err"])
	require.NotContains(t, line, "v")
	require.False(t, decoder.More())
}
