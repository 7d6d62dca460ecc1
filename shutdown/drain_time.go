package shutdown

import (
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// logDrainTime logs why a drain begins, how much time it has, and what sets that time.
func (s *shell) logDrainTime(e node.Effect) {
	of := e.Shutdown
	logger := klog.FromContext(s.ctx).WithValues("kind", of.Kind, "origin", of.Origin, "setBy", s.timeSetBy(of))
	if len(s.schedule) > 0 || !of.HostEnd.IsZero() { // otherwise the time follows from the pods, which are not listed yet
		logger = logger.WithValues("time", of.WaitEnd().Sub(s.now()).Round(time.Millisecond))
	}
	s.logLines.Add(func() { logger.Info(e.Text) })
}

// timeSetBy says, for the log, what decides how much time a drain has: the announcement or the host's setting, if the
// host waits for less than the requested delay; otherwise the options, or the pods if no schedule is configured.
func (s *shell) timeSetBy(of *node.Shutdown) string {
	requested := s.requestedDelay()
	announced := of.HostEnd.Sub(of.Began) // meaningless without a HostEnd
	hostDecides := !of.HostEnd.IsZero() && (announced < requested-times.Lag || len(s.schedule) == 0)
	switch {
	case hostDecides:
		if h := s.host.Load(); h != nil {
			granted, known := h.Granted()
			// If the deadline is about as far away as the granted delay, it follows from the host's limit.
			if isHostsLimit := known && (announced-granted).Abs() < time.Second; isHostsLimit && h.LimitSetBy() != "" {
				return h.LimitSetBy()
			}
		}
		return "the announcement"
	case len(s.schedule) == 0:
		return "the grace periods of the pods"
	case requested < s.budget().Total():
		return "Options.Plan.Limit"
	default:
		return "the configured grace periods"
	}
}
