//go:build linux

package logindfake

// Lack is a feature that a bus, or its logind, lacks. The kubelet works without any of them, unless
// noted. The value is its name.
type Lack string

const (
	// LackOtherHandshakes closes a connection that does not begin like the kubelet's: AUTH, AUTH
	// EXTERNAL, NEGOTIATE_UNIX_FD, BEGIN.
	LackOtherHandshakes Lack = "other handshakes"
	// LackAgreement answers ERROR to NEGOTIATE_UNIX_FD, but passes descriptors. The kubelet gets no
	// lock.
	LackAgreement Lack = "AGREE_UNIX_FD"
	// LackAnswer does not answer NEGOTIATE_UNIX_FD, but passes descriptors. It overrides
	// [LackAgreement]. The kubelet waits forever.
	LackAnswer Lack = "an answer to NEGOTIATE_UNIX_FD"
	// LackConnections serves one client at a time. Others wait.
	LackConnections Lack = "several connections"
	// LackOwner answers that GetNameOwner is unknown.
	LackOwner Lack = "GetNameOwner"
	// LackOwnerChanges refuses a match for NameOwnerChanged and never sends it.
	LackOwnerChanges Lack = "NameOwnerChanged"
	// LackMatches refuses matches by sender or by argument.
	LackMatches Lack = "matches by sender"
	// LackSenders delivers messages without a sender.
	LackSenders Lack = "senders"
	// LackInterface delivers logind's signals with the interface org.freedesktop.login1, as Talos does.
	LackInterface Lack = "the interface of signals"
	// LackProcessIDs answers that GetConnectionUnixProcessID is unknown.
	LackProcessIDs Lack = "GetConnectionUnixProcessID"
	// LackMetadata refuses a match for PrepareForShutdownWithMetadata and never sends it.
	LackMetadata Lack = "PrepareForShutdownWithMetadata"
	// LackPreparing answers that the property PreparingForShutdown is unknown.
	LackPreparing Lack = "PreparingForShutdown"
	// LackList answers that ListInhibitors is unknown.
	LackList Lack = "ListInhibitors"
)

// Lacks returns every [Lack]: the features that a fake can be made without.
func Lacks() []Lack {
	return []Lack{
		LackOtherHandshakes, LackAgreement, LackAnswer, LackConnections, LackOwner, LackOwnerChanges,
		LackMatches, LackSenders, LackInterface, LackProcessIDs, LackMetadata, LackPreparing,
		LackList,
	}
}
