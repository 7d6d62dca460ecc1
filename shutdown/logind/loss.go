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

// feature is an optional feature of the bus or of logind. Its text is for the log, and says what happens without
// the feature. The kubelet needs none of them, so a session must work without them too.
type feature string

const (
	featureNegotiation  feature = "NEGOTIATE_UNIX_FD: the inhibitor lock arrives only if the bus passes descriptors anyway"
	featureOwnerChanges feature = "NameOwnerChanged: a restart of systemd-logind is not noticed"
	featureOwner        feature = "GetNameOwner: announcements of every sender are accepted"
	featureSenders      feature = "senders of signals: announcements of every sender are accepted"
	featureMatches      feature = "matches by sender: signals of others arrive, and are dropped if their sender is known"
	featureMetadata     feature = prepareForShutdownWithMetadata + ": the kind of a shutdown is not known"
	featurePreparing    feature = "PreparingForShutdown: a shutdown that began before the agent and a cancellation without a signal are not noticed"
	featureList         feature = "ListInhibitors: an inhibitor lock that systemd-logind has lost is not replaced"
)

// missingFeatures records which missing features a Source has logged, so that a new session does not log them again.
type missingFeatures struct{ logged sync.Map }

// log logs a missing feature, unless it was logged already.
func (l *missingFeatures) log(logger klog.Logger, missing feature) {
	if _, wasLogged := l.logged.LoadOrStore(missing, true); !wasLogged {
		logger.Info("The bus or systemd-logind lacks an optional feature", "missing", string(missing))
	}
}

// isMissingFeature reports whether an error is a reply of the bus or of logind which says that it does not have, or does not
// permit, what was called. A later call would fail too. A timeout, or logind's absence from the bus, does not count: it may
// pass.
func isMissingFeature(err error) bool {
	var reply dbus.Error
	if !errors.As(err, &reply) {
		return false
	}
	name := reply.Name[strings.LastIndex(reply.Name, ".")+1:]
	return strings.HasPrefix(name, "Unknown") ||
		slices.Contains([]string{"AccessDenied", "InvalidArgs", "MatchRuleInvalid", "NotSupported", "PropertyNotFound", "InterfaceNotFound"}, name)
}
