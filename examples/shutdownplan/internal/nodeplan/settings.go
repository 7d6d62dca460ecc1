package nodeplan

import (
	"math"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// Settings are common to all nodes. Make them with [NewSettings].
type Settings struct {
	config   plan.Config
	schedule plan.Schedule
	options  plan.Options
	off      bool
}

// NewSettings makes the settings from a kubelet's configuration and the feature gates of its
// file. A missing gate has its default. An options.Limit of math.MaxInt64 means no limit. A
// configuration that a kubelet refuses is an error.
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
		s.off = true // the pods end with the host, as in a drain of buckets without time
		s.schedule = plan.Schedule{{Priority: 0}, {Priority: plan.SystemCriticalPriority}}
	}
	return s, nil
}

// disabled reports whether a feature gate is set to false.
func disabled(gates map[string]bool, name string) bool {
	enabled, set := gates[name]
	return set && !enabled
}

// Header returns the header of a document.
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

// ceilSeconds returns a duration in whole seconds, rounded up.
func ceilSeconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
