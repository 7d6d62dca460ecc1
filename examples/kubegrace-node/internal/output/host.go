package output

import "github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"

// hostText says whose plan it is, how long the host is asked to wait, and how long it waits.
func hostText(h nodeplan.Header) string {
	const off = "The graceful node shutdown is off: the kubelet's configuration has no shutdownGracePeriod. The host does not wait for pods."
	if h.Agent == nodeplan.Kubelet {
		if h.Off {
			return "A stock kubelet's plan. " + off
		}
		return "A stock kubelet's plan. " + kubeletText(h)
	}
	if h.Off {
		return "kubegrace's plan. " + off
	}
	asked := "kubegrace's plan. The host is asked for " + secondsText(h.NeededSeconds)
	switch {
	case h.LimitSeconds == nil:
		return asked + "; how long it waits is not known (--limit)."
	case *h.LimitSeconds < h.NeededSeconds:
		return asked + ", but waits for " + secondsText(*h.LimitSeconds) + " only."
	default:
		return asked + ", and waits for up to " + secondsText(*h.LimitSeconds) + "."
	}
}

const unheld = "No pod gets a preStop hook, an order or a grace period: systemd ends all containers at once, with SIGTERM, and with SIGKILL 90 s later by default."

// kubeletText says whether a kubelet takes its lock.
func kubeletText(h nodeplan.Header) string {
	needs := secondsText(h.NeededSeconds)
	switch {
	case h.NoLock:
		by := ""
		if h.LimitedBy != "" {
			by = ", by " + h.LimitedBy + ", which wins against the kubelet's drop-in"
		}
		if h.LimitSeconds == nil {
			return "It takes no lock: logind's limit is infinity" + by + ", and a kubelet takes that for less than the " + needs + " that it needs. " + unheld
		}
		return "It takes no lock: it needs " + needs + ", and the host waits for " + secondsText(*h.LimitSeconds) +
			" only" + by + ". " + unheld
	case h.LimitSeconds == nil:
		return "It asks the host for " + needs + ". How long that waits is not known (--limit): with less than " + needs + " it would take no lock at all."
	default:
		return "It holds its lock for up to " + needs + ", and the host waits for up to " + secondsText(*h.LimitSeconds) + "."
	}
}
