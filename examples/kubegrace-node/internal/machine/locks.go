package machine

import (
	"slices"
	"strings"
)

// kubegraceWhy is the default reason of kubegrace's locks (package logind).
const kubegraceWhy = "Pods need time to end before the node shuts down"

// isAboutShutdown reports whether a lock's list of what it is about has the shutdown in it.
func isAboutShutdown(what string) bool { return slices.Contains(strings.Split(what, ":"), "shutdown") }

// isKubelets reports whether a lock is that of a stock kubelet.
func (l Lock) isKubelets() bool { return l.Mode == "delay" && l.Who == "kubelet" }

// isKubegraces reports whether a lock is that of an agent with kubegrace.
func (l Lock) isKubegraces() bool {
	return l.Mode == "delay" && !l.isKubelets() && (l.Why == kubegraceWhy || l.Who == "kubegrace" || l.Who == "kubegrace-node")
}

// isBlock reports whether a lock refuses a shutdown in place of delaying it.
func (l Lock) isBlock() bool { return l.Mode != "delay" }

// lock returns the first lock of a kind; nil: nobody holds one.
func (s *State) lock(kind func(Lock) bool) *Lock {
	if s.Logind == nil {
		return nil
	}
	i := slices.IndexFunc(s.Logind.Locks, kind)
	if i < 0 {
		return nil
	}
	return &s.Logind.Locks[i]
}
