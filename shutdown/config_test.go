package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/shutdown"
)

// gates is a feature gate of one method with these features on.
type gates map[featuregate.Feature]bool

func (g gates) Enabled(key featuregate.Feature) bool { return g[key] }

func config(total, critical time.Duration, list ...shutdown.PodPriorityGracePeriod) shutdown.Config {
	return shutdown.Config{
		ShutdownGracePeriod:              metav1.Duration{Duration: total},
		ShutdownGracePeriodCriticalPods:  metav1.Duration{Duration: critical},
		ShutdownGracePeriodByPodPriority: list,
	}
}

func entry(priority int32, seconds int64) shutdown.PodPriorityGracePeriod {
	return shutdown.PodPriorityGracePeriod{Priority: priority, ShutdownGracePeriodSeconds: seconds}
}

func TestConfigIsReadByTheKubeletsNames(t *testing.T) {
	var cfg shutdown.Config
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
shutdownGracePeriodByPodPriority:
- priority: 100000
  shutdownGracePeriodSeconds: 10
- priority: 0
  shutdownGracePeriodSeconds: 60
`), &cfg))
	require.Equal(t, config(30*time.Second, 10*time.Second, entry(100000, 10), entry(0, 60)), cfg)
}

func TestValidateAccepts(t *testing.T) {
	list := []shutdown.PodPriorityGracePeriod{entry(0, 10), entry(0, -1)}
	off := gates{}
	for name, c := range map[string]struct {
		cfg  shutdown.Config
		gate shutdown.FeatureGate
	}{
		"nothing":                    {shutdown.Config{}, nil},
		"nothing, gates off":         {shutdown.Config{}, off},
		"an empty list, gates off":   {config(0, 0, []shutdown.PodPriorityGracePeriod{}...), off},
		"one second":                 {config(time.Second, 0), nil},
		"all of it critical":         {config(time.Second, time.Second), nil},
		"a list":                     {config(0, 0, list...), nil},
		"a list without its sibling": {config(0, 0, list...), gates{shutdown.GracefulNodeShutdownBasedOnPodPriority: true}},
		"a total without the list's": {config(time.Second, 0), gates{shutdown.GracefulNodeShutdown: true}},
	} {
		require.NoError(t, c.cfg.Validate(c.gate), name)
	}
}

func TestValidateSaysEverythingInTheKubeletsOrder(t *testing.T) {
	off, list := gates{}, entry(0, 10)
	for name, c := range map[string]struct {
		cfg  shutdown.Config
		gate shutdown.FeatureGate
		want string
	}{
		"critical above total": {config(time.Second, 2*time.Second), nil, "" +
			"invalid configuration: shutdownGracePeriodCriticalPods {2s} must be <= shutdownGracePeriod {1s}"},
		"negative total": {config(-time.Second, -time.Second), nil, "" +
			"invalid configuration: shutdownGracePeriod {-1s} must be either zero or otherwise >= 1 sec\n" +
			"invalid configuration: shutdownGracePeriodCriticalPods {-1s} must be either zero or otherwise >= 1 sec"},
		"too short, gate off": {config(time.Millisecond, 2*time.Millisecond), off, "" +
			"invalid configuration: shutdownGracePeriodCriticalPods {2ms} must be <= shutdownGracePeriod {1ms}\n" +
			"invalid configuration: shutdownGracePeriod {1ms} must be either zero or otherwise >= 1 sec\n" +
			"invalid configuration: shutdownGracePeriodCriticalPods {2ms} must be either zero or otherwise >= 1 sec\n" +
			"invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown"},
		"both forms": {config(time.Second, 0, list), nil, "" +
			"invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time"},
		"both forms, gates off": {config(time.Second, 0, list), off, "" +
			"invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown\n" +
			"invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority"},
	} {
		require.EqualError(t, c.cfg.Validate(c.gate), c.want, name)
	}
}
