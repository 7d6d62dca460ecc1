//go:build linux

package logind

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"
	"k8s.io/klog/v2"
)

// loss is something that this package uses where the host's bus or its logind has it. The kubelet
// holds its lock without any of it, and so does this package. The value says what is missing.
type loss string

const (
	lossAgreement    loss = "NEGOTIATE_UNIX_FD"
	lossOwnerChanges loss = "NameOwnerChanged"
	lossOwner        loss = "GetNameOwner"
	lossMatches      loss = "matches by sender"
	lossSenders      loss = "senders of signals"
	lossMetadata     loss = prepareForShutdownWithMetadata
	lossPreparing    loss = "PreparingForShutdown"
	lossList         loss = "ListInhibitors"
)

// cost says what a loss costs.
func (l loss) cost() string {
	switch l {
	case lossAgreement:
		return "The inhibitor arrives only if the bus passes descriptors all the same"
	case lossOwnerChanges:
		return "A restart of systemd-logind is not noticed"
	case lossOwner, lossSenders:
		return "An announcement is believed whoever sends it"
	case lossMatches:
		return "Announcements of other processes arrive, and are dropped where their sender is known"
	case lossMetadata:
		return "The kind of a shutdown is not known"
	case lossPreparing:
		return "A shutdown that was announced before the agent listened is not noticed, nor that one was cancelled without a signal"
	default: // lossList
		return "An inhibitor that systemd-logind has lost is not taken again"
	}
}

// losses are what a Source has found missing. Each is told once, whatever the number of sessions.
type losses struct{ told sync.Map }

// tell logs a loss.
func (l *losses) tell(logger klog.Logger, missing loss) {
	if _, again := l.told.LoadOrStore(missing, true); !again {
		logger.Info("The host's bus or its systemd-logind lacks something, and its shutdown is delayed without it", "missing", string(missing), "cost", missing.cost())
	}
}

// isUnknown reports whether err is the reply of somebody who does not know what was asked for or
// does not give it. No answer, and the answer that logind is not on the bus, are none of these: what
// was asked for may be there a moment later.
func isUnknown(err error) bool {
	var reply dbus.Error
	if !errors.As(err, &reply) {
		return false
	}
	name := reply.Name[strings.LastIndex(reply.Name, ".")+1:]
	return strings.HasPrefix(name, "Unknown") || strings.HasSuffix(name, "NotFound") || // the latter is godbus's for properties
		slices.Contains([]string{"AccessDenied", "InvalidArgs", "MatchRuleInvalid", "NotSupported"}, name)
}
