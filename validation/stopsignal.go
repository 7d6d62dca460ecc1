package validation

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// stopSignal checks the stop signal of a container (KEP-4960). The valid signals depend on
// spec.os.name, so spec.os must be set. An empty or invalid spec.os.name is checked elsewhere.
func (c *checker) stopSignal(signal v1.Signal, at lazyPath) {
	if c.opts.NoStopSignals {
		c.forbidden(at, "may not be set when feature gate ContainerStopSignals is disabled")
		return
	}
	if c.os == nil {
		c.forbidden(at, "may not be set for containers with empty `spec.os.name`")
		return
	}
	switch c.os.Name {
	case v1.Windows:
		c.oneOf(signal, []v1.Signal{v1.SIGKILL, v1.SIGTERM}, at)
	case v1.Linux:
		signals := linuxSignals()
		c.oneOf(signal, signals[:], at)
	}
}

// oneOf checks that a signal is in a sorted list. The error gets a copy of the list. So the
// list itself can stay on the caller's stack, and a valid signal costs no allocation.
func (c *checker) oneOf(signal v1.Signal, signals []v1.Signal, at lazyPath) {
	if _, found := slices.BinarySearch(signals, signal); !found {
		c.errs = append(c.errs, field.NotSupported(at.fieldPath(), signal, slices.Clone(signals)))
	}
}

// linuxSignals returns the valid stop signals of Linux, sorted by name. They include signals
// that do not stop a process, such as SIGCHLD (KEP-4960).
func linuxSignals() [65]v1.Signal {
	return [65]v1.Signal{
		v1.SIGABRT, v1.SIGALRM, v1.SIGBUS, v1.SIGCHLD, v1.SIGCLD,
		v1.SIGCONT, v1.SIGFPE, v1.SIGHUP, v1.SIGILL, v1.SIGINT,
		v1.SIGIO, v1.SIGIOT, v1.SIGKILL, v1.SIGPIPE, v1.SIGPOLL,
		v1.SIGPROF, v1.SIGPWR, v1.SIGQUIT, v1.SIGRTMAX, v1.SIGRTMAXMINUS1,
		v1.SIGRTMAXMINUS10, v1.SIGRTMAXMINUS11, v1.SIGRTMAXMINUS12, v1.SIGRTMAXMINUS13, v1.SIGRTMAXMINUS14,
		v1.SIGRTMAXMINUS2, v1.SIGRTMAXMINUS3, v1.SIGRTMAXMINUS4, v1.SIGRTMAXMINUS5, v1.SIGRTMAXMINUS6,
		v1.SIGRTMAXMINUS7, v1.SIGRTMAXMINUS8, v1.SIGRTMAXMINUS9, v1.SIGRTMIN, v1.SIGRTMINPLUS1,
		v1.SIGRTMINPLUS10, v1.SIGRTMINPLUS11, v1.SIGRTMINPLUS12, v1.SIGRTMINPLUS13, v1.SIGRTMINPLUS14,
		v1.SIGRTMINPLUS15, v1.SIGRTMINPLUS2, v1.SIGRTMINPLUS3, v1.SIGRTMINPLUS4, v1.SIGRTMINPLUS5,
		v1.SIGRTMINPLUS6, v1.SIGRTMINPLUS7, v1.SIGRTMINPLUS8, v1.SIGRTMINPLUS9, v1.SIGSEGV,
		v1.SIGSTKFLT, v1.SIGSTOP, v1.SIGSYS, v1.SIGTERM, v1.SIGTRAP,
		v1.SIGTSTP, v1.SIGTTIN, v1.SIGTTOU, v1.SIGURG, v1.SIGUSR1,
		v1.SIGUSR2, v1.SIGVTALRM, v1.SIGWINCH, v1.SIGXCPU, v1.SIGXFSZ,
	}
}
