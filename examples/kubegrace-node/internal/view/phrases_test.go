package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
)

func TestDoing(t *testing.T) {
	for want, p := range map[string]Pod{
		"runs":                                  {State: Running},
		"not stopped after 3.0 s: left running": gonePod("a", endedContainer(lifecycle.OutcomeLeftRunning)),
		"not known":                             {},
	} {
		require.Equal(t, want, p.doing(false))
	}
	require.Equal(t, "runs until it is its bucket's turn", Pod{State: Running}.doing(true))
}

func TestOtherStopSignals(t *testing.T) {
	c := containerIn("app", lifecycle.PhaseStopping)
	c.Signal = "SIGQUIT"
	require.Equal(t, "got SIGQUIT, is ending", c.doing())
}

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "0.0 s",
		-time.Second:                          "0.0 s",
		1240 * time.Millisecond:               "1.2 s",
		59940 * time.Millisecond:              "59.9 s",
		time.Minute:                           "60.0 s",
		90*time.Second + 400*time.Millisecond: "1m30s",
		2 * time.Hour:                         "2h0m0s",
	} {
		require.Equal(t, want, durationText(d))
	}
}

func TestPlural(t *testing.T) {
	require.Equal(t, "0 pods", plural(0, "pod"))
	require.Equal(t, "1 pod", plural(1, "pod"))
	require.Equal(t, "2 buckets", plural(2, "bucket"))
}

func TestBucketName(t *testing.T) {
	require.Equal(t, "2000000000+", bucketName(2000000000))
	require.Equal(t, "-5+", bucketName(-5))
}
