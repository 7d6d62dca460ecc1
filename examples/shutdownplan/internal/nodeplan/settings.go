package nodeplan

import (
	"math"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// Settings are what the nodes have in common.
type Settings struct {
	config   plan.Config
	schedule plan.Schedule
	options  plan.Options
	off      bool
}

// NewSettings checks a kubelet's configuration. The feature gates are those of its
// file; one that is missing has its default. A limit of the options that is as long as
// a duration can be is none.
func NewSettings(config plan.Config, gates map[string]bool, options plan.Options) (Settings, error) {
	checks := validation.Options{
		NoGracefulNodeShutdown:  disabled(gates, "GracefulNodeShutdown"),
		NoShutdownByPodPriority: disabled(gates, "GracefulNodeShutdownBasedOnPodPriority"),
	}
	if err := validation.ValidateNodeShutdown(config, checks); err != nil {
		return Settings{}, err
	}
	if options.Limit == math.MaxInt64 {
		options.Limit = 0
	}
	s := Settings{config: config, options: options, schedule: config.Schedule(!checks.NoShutdownByPodPriority)}
	if len(s.schedule) == 0 {
		s.off = true // all pods end with the host: what a drain without any time does
		s.schedule = plan.Schedule{{Priority: 0}, {Priority: plan.SystemCriticalPriority}}
	}
	return s, nil
}

func disabled(gates map[string]bool, name string) bool {
	enabled, set := gates[name]
	return set && !enabled
}

// Header is what all nodes have in common.
func (s Settings) Header() Header {
	h := Header{Configuration: s.config, Off: s.off}
	if !s.off {
		h.NeededSeconds = plan.NewBudget(s.schedule, s.options).Total().Seconds()
	}
	if s.options.Limit != 0 {
		limit := max(s.options.Limit, 0).Seconds()
		h.LimitSeconds = &limit
	}
	return h
}

// seconds are the whole seconds of a span, rounded up.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
