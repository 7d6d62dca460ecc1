//go:build linux

package logindtest

// Lack is something that a host's bus, or the logind on it, does not have. The kubelet holds its lock
// and hears of a shutdown without any of it. The value names it for the log of a test.
type Lack string

const (
	// LackOtherHandshakes ends a connection that begins with anything but the kubelet's conversation:
	// AUTH, AUTH EXTERNAL, NEGOTIATE_UNIX_FD, BEGIN.
	LackOtherHandshakes Lack = "other handshakes"
	// LackAgreement answers ERROR to NEGOTIATE_UNIX_FD. Descriptors are passed all the same. The
	// kubelet, which believes the answer, gets no lock.
	LackAgreement Lack = "AGREE_UNIX_FD"
	// LackAnswer answers nothing to NEGOTIATE_UNIX_FD, and is stronger than [LackAgreement].
	// Descriptors are passed all the same. The kubelet waits for ever.
	LackAnswer Lack = "an answer to NEGOTIATE_UNIX_FD"
	// LackConnections serves one client at a time. Others wait until it has gone.
	LackConnections Lack = "several connections"
	// LackOwner answers that GetNameOwner is unknown.
	LackOwner Lack = "GetNameOwner"
	// LackOwnerChanges refuses a match for NameOwnerChanged and never sends it.
	LackOwnerChanges Lack = "NameOwnerChanged"
	// LackMatches refuses matches by sender or by argument.
	LackMatches Lack = "matches by sender"
	// LackSenders delivers messages that do not say who sends them.
	LackSenders Lack = "senders"
	// LackInterface delivers logind's signals with the interface org.freedesktop.login1, as Talos does.
	LackInterface Lack = "the interface of signals"
	// LackProcessIDs answers that GetConnectionUnixProcessID is unknown.
	LackProcessIDs Lack = "GetConnectionUnixProcessID"
	// LackMetadata refuses a match for PrepareForShutdownWithMetadata and never sends it.
	LackMetadata Lack = "PrepareForShutdownWithMetadata"
	// LackPreparing answers that there is no property PreparingForShutdown.
	LackPreparing Lack = "PreparingForShutdown"
	// LackList answers that ListInhibitors is unknown.
	LackList Lack = "ListInhibitors"
)

// Lacks returns every Lack.
func Lacks() []Lack {
	return []Lack{
		LackOtherHandshakes, LackAgreement, LackAnswer, LackConnections, LackOwner, LackOwnerChanges,
		LackMatches, LackSenders, LackInterface, LackProcessIDs, LackMetadata, LackPreparing,
		LackList,
	}
}
