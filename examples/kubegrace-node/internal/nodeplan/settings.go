package nodeplan

import (
	"math"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// Agent is the program that drains the node.
type Agent string

const (
	// Kubelet is the stock kubelet, of which a plan says what it does, mistakes included: without
	// enough delay it takes no lock at all, unused time is lost, and a static pod without a
	// priority is at 0.
	Kubelet Agent = "kubelet"
	// Kubegrace is an agent with the manager of package shutdown.
	Kubegrace Agent = "kubegrace"
)

// Agents returns all agents, the default first.
func Agents() []string { return []string{string(Kubelet), string(Kubegrace)} }

// Settings are common to all nodes. Make them with [NewSettings].
type Settings struct {
	agent    Agent
	config   plan.Config
	gates    map[string]bool
	schedule plan.Schedule
	options  plan.Options
	off      bool
	limitBy  string // the file that keeps the limit as it is; "": not known
	raisable bool   // the agent can raise the limit
}

// NewSettings makes the settings from a kubelet's configuration and the feature gates of its
// file. A missing gate has its default. Of the options a kubelet has the Limit and PriorityOf
// only. An options.Limit of math.MaxInt64 means no limit. A configuration that a kubelet refuses
// is an error.
func NewSettings(agent Agent, config plan.Config, gates map[string]bool, options plan.Options) (Settings, error) {
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
	if agent == Kubelet {
		options = plan.Options{Limit: options.Limit, PriorityOf: options.PriorityOf, NoRollOver: true}
	}
	s := Settings{agent: agent, config: config, gates: gates, options: options, schedule: config.Schedule(!checks.NoShutdownByPodPriority)}
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

// needed returns how long the agent asks the host to wait.
func (s Settings) needed() time.Duration {
	switch {
	case s.off:
		return 0
	case s.agent == Kubelet:
		return s.schedule.Total()
	default:
		return plan.NewBudget(s.schedule, s.options).Total()
	}
}

// noLock reports whether the agent is a kubelet that takes no lock, because it cannot have all the
// delay that it needs (its nodeshutdown manager fails to start then, and stays away).
func (s Settings) noLock() bool {
	return s.agent == Kubelet && s.options.Limit != 0 && max(s.options.Limit, 0) < s.needed()
}

// OnMachine returns the settings for a machine whose logind has a limit, as of NewSettings. by is the
// file that keeps it so; "" means that the agent can raise it.
func (s Settings) OnMachine(limit time.Duration, by string) Settings {
	s = s.limitedTo(limit)
	s.limitBy, s.raisable = by, by == ""
	return s
}

// limitedTo returns the settings with another limit.
func (s Settings) limitedTo(limit time.Duration) Settings {
	if limit == math.MaxInt64 {
		limit = 0
	}
	s.options.Limit = limit
	return s
}

// Header returns the header of a document.
func (s Settings) Header() Header {
	h := Header{Agent: s.agent, Configuration: s.config, Off: s.off, NoLock: s.noLock(), NeededSeconds: s.needed().Seconds(), LimitedBy: s.limitBy}
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
