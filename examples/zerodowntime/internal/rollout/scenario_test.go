package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSettingsAreChecked(t *testing.T) {
	good := Settings{Replicas: 1, Rate: 1, GraceSeconds: 1, ShortGraceSeconds: 1, Websockets: 1}
	require.NoError(t, good.Validate())
	bad := Settings{Delay: -1, SleepSeconds: 2, GraceSeconds: 1, Task: 2 * time.Hour}
	for _, text := range []string{"backends", "rate", "short grace", "websockets", "the delay", "the task", "an API server refuses such a pod"} {
		require.ErrorContains(t, bad.Validate(), text)
	}
}

func TestNamesAreThoseOfTheScenarios(t *testing.T) {
	var names []string
	for _, s := range Scenarios(Settings{}) {
		names = append(names, s.Name)
	}
	require.Equal(t, names, Names())
}
