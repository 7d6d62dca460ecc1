package cri_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// allOff is a gate with every feature off.
type allOff struct{}

func (allOff) Enabled(featuregate.Feature) bool { return false }

func TestStartPodPassesTheStopSignal(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*v1.Container)
		gates lifecycle.FeatureGate
		want  runtimeapi.Signal
	}{
		"set":                  {withStopSignal("SIGUSR1"), nil, runtimeapi.Signal_SIGUSR1},
		"real-time, from min":  {withStopSignal("SIGRTMIN+3"), nil, runtimeapi.Signal_SIGRTMINPLUS3},
		"real-time, from max":  {withStopSignal("SIGRTMAX-14"), nil, runtimeapi.Signal_SIGRTMAXMINUS14},
		"no lifecycle":         {nil, nil, runtimeapi.Signal_RUNTIME_DEFAULT},
		"a lifecycle, without": {func(c *v1.Container) { c.Lifecycle = &v1.Lifecycle{} }, nil, runtimeapi.Signal_RUNTIME_DEFAULT},
		"gate off":             {withStopSignal("SIGUSR1"), allOff{}, runtimeapi.Signal_RUNTIME_DEFAULT},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub()
			_, err := s.connect(t, cri.Options{Gates: c.gates}).StartPod(t.Context(), onePod(c.edit))
			require.NoError(t, err)
			require.Equal(t, c.want, requests[*runtimeapi.CreateContainerRequest](s)[0].GetConfig().GetStopSignal())
		})
	}
}

func TestStartPodWarnsOfARuntimeThatIgnoresTheStopSignal(t *testing.T) {
	for name, c := range map[string]struct {
		signal v1.Signal
		ignore bool
		gates  lifecycle.FeatureGate
		warned bool
	}{
		"ignored":            {signal: "SIGUSR1", ignore: true, warned: true},
		"honoured":           {signal: "SIGUSR1"},
		"ignored, gate off":  {signal: "SIGUSR1", ignore: true, gates: allOff{}},
		"ignored, none set":  {ignore: true},
		"default, asked for": {signal: "SIGTERM", ignore: true, warned: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub()
			s.ignoreStopSignal = c.ignore
			edit := withStopSignal(c.signal)
			if c.signal == "" {
				edit = nil
			}
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
			_, err := s.connect(t, cri.Options{Gates: c.gates}).StartPod(klog.NewContext(t.Context(), logger), onePod(edit))
			require.NoError(t, err)

			entries := logger.GetSink().(ktesting.Underlier).GetBuffer().Data()
			if !c.warned {
				require.Empty(t, entries)
				return
			}
			require.Len(t, entries, 1)
			require.Equal(t, []any{"asked", string(c.signal), "shown", "RUNTIME_DEFAULT"}, entries[0].ParameterKVList)
			require.Contains(t, entries[0].WithKVList, "server")
		})
	}
}
