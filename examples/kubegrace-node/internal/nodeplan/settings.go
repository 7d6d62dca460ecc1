package nodeplan

import (
	"math"
	"time"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// Agent is the program that drains the node.
type Agent string

const (
	// Kubelet is the stock kubelet. Its plan includes its known mistakes: it takes no lock at all if the
	// host's limit is too short, it loses the time that a bucket does not use, and it treats a static pod
	// without spec.priority as priority 0, whatever its priority class is.
	Kubelet Agent = "kubelet"
	// Kubegrace is an agent with the manager of package shutdown.
	Kubegrace Agent = "kubegrace"
)

// Agents returns all agents, the default first.
func Agents() []string { return []string{string(Kubelet), string(Kubegrace)} }

// Settings are all that the plan of a node needs besides the pods of the node. All nodes share them. Make them
// with [NewSettings].
type Settings struct {
	agent    Agent
	config   kubeletconfig.Config
	schedule plan.Schedule
	options  plan.Options

	isOff          bool   // the configuration switches the graceful node shutdown off
	overridingFile string // the logind file that sets the limit and overrides the agent's drop-in; "": not known
	canRaiseLimit  bool   // no file overrides the agent's drop-in
}

// NewSettings makes the settings from a kubelet's configuration. A configuration that a kubelet refuses is an error. An
// options.Limit of 0 means that the host's limit is not known. For [Kubelet] only Limit and PriorityOf of the options count.
func NewSettings(agent Agent, config kubeletconfig.Config, options plan.Options) (Settings, error) {
	checks := validation.Options{
		NoGracefulNodeShutdown:  !config.Enabled("GracefulNodeShutdown"),
		NoShutdownByPodPriority: !config.Enabled("GracefulNodeShutdownBasedOnPodPriority"),
	}
	if err := validation.ValidateNodeShutdown(config.Shutdown, checks); err != nil {
		return Settings{}, err
	}
	if agent == Kubelet {
		options = plan.Options{Limit: options.Limit, PriorityOf: options.PriorityOf, NoRollOver: true}
	}
	s := Settings{agent: agent, config: config, options: options, schedule: config.Schedule()}
	if len(s.schedule) == 0 {
		// The pods are killed with the host. Two buckets of 0 s give the same plan.
		s.isOff = true
		s.schedule = plan.Schedule{{Priority: 0}, {Priority: plan.SystemCriticalPriority}}
	}
	return s, nil
}

// needed returns how long the agent asks the host to wait. It is 0 if the graceful node shutdown is off.
func (s Settings) needed() time.Duration {
	switch {
	case s.isOff:
		return 0
	case s.agent == Kubelet:
		return s.schedule.Total()
	default:
		return plan.NewBudget(s.schedule, s.options).Total()
	}
}

// limitIsTooShort reports whether the host is known to wait for less time than the agent needs.
func (s Settings) limitIsTooShort() bool {
	return s.options.Limit != 0 && s.options.Limit < s.needed()
}

// takesNoLock reports whether the agent is a kubelet that takes no lock. If the host's limit is too short, the
// start of the kubelet's nodeshutdown manager fails and is not tried again.
func (s Settings) takesNoLock() bool { return s.agent == Kubelet && s.limitIsTooShort() }

// hostWaits reports whether the host waits for the pods: the graceful node shutdown is on, and the agent takes a lock.
func (s Settings) hostWaits() bool { return !s.isOff && !s.takesNoLock() }

// OnMachine returns the settings for a machine whose logind has this limit; math.MaxInt64 means that there is none.
// overridingFile is the file that overrides the agent's drop-in, so that the agent cannot raise the limit; "": no file does.
func (s Settings) OnMachine(limit time.Duration, overridingFile string) Settings {
	s = s.limitedTo(limit)
	s.overridingFile, s.canRaiseLimit = overridingFile, overridingFile == ""
	return s
}

// limitedTo returns the settings with another limit of the host; math.MaxInt64 means that there is none.
func (s Settings) limitedTo(limit time.Duration) Settings {
	if limit == math.MaxInt64 {
		limit = 0 // which means in plan.Options that there is no limit
	}
	s.options.Limit = limit
	return s
}

// Header returns what a document says about the agent and its configuration, as opposed to the nodes.
func (s Settings) Header() Header {
	h := Header{Agent: s.agent, Configuration: s.config.Shutdown, Off: s.isOff, NoLock: s.takesNoLock(), NeededSeconds: s.needed().Seconds(), LimitedBy: s.overridingFile}
	if s.options.Limit != 0 {
		seconds := s.options.Limit.Seconds()
		h.LimitSeconds = &seconds
	}
	return h
}
