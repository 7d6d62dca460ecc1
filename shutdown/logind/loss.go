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

// loss is something that this package uses where the host's bus or its logind has it, and what it
// costs that it is missing. The kubelet holds its lock without any of it, and so does this package.
type loss string

const (
	lossAgreement    loss = "NEGOTIATE_UNIX_FD: the inhibitor arrives only if the bus passes descriptors all the same"
	lossOwnerChanges loss = "NameOwnerChanged: a restart of systemd-logind is not noticed"
	lossOwner        loss = "GetNameOwner: an announcement is believed whoever sends it"
	lossSenders      loss = "senders of signals: an announcement is believed whoever sends it"
	lossMatches      loss = "matches by sender: announcements of others arrive, and are dropped if their sender is known"
	lossMetadata     loss = prepareForShutdownWithMetadata + ": the kind of a shutdown is not known"
	lossPreparing    loss = "PreparingForShutdown: neither a shutdown that began before the agent is noticed, nor a cancellation without a signal"
	lossList         loss = "ListInhibitors: an inhibitor that systemd-logind has lost is not taken again"
)

// losses are what a Source has found missing. Each is told once, whatever the number of sessions.
type losses struct{ told sync.Map }

// tell logs a loss.
func (l *losses) tell(logger klog.Logger, missing loss) {
	if _, again := l.told.LoadOrStore(missing, true); !again {
		logger.Info("The host's bus or its systemd-logind lacks something, and its shutdown is delayed without it", "missing", string(missing))
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
	return strings.HasPrefix(name, "Unknown") ||
		slices.Contains([]string{"AccessDenied", "InvalidArgs", "MatchRuleInvalid", "NotSupported", "PropertyNotFound", "InterfaceNotFound"}, name)
}
