//go:build linux

package logind_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The session reads logind's list of locks every 5 ms. logind no longer lists a lock that it has listed before, so that it
// would not delay a shutdown. The session ends, so that the manager takes a new lock.
func TestAnUnlistedLockEndsTheSession(t *testing.T) {
	h := newHost(t)
	h.times.Verify = 5 * time.Millisecond
	session := h.connect(t)
	h.inhibit(t, session)
	awaitListReads(t, h)
	h.login1.HideLocks() // from now on logind's list is empty
	awaitEnd(t, session)
}

// A lock that the agent has closed is no longer listed by logind. The session continues and delivers the next shutdown.
func TestAClosedLockIsNotLost(t *testing.T) {
	h := newHost(t)
	h.times.Verify = 5 * time.Millisecond
	session := h.connect(t)
	h.inhibit(t, session)
	second, _ := h.inhibit(t, session)
	awaitListReads(t, h)
	require.NoError(t, second.Close())
	awaitListReads(t, h)
	h.announceShutdown()
	requireAnnounced(t, session)
}

// logind has never listed the lock, so the lock does not count as lost: the session must continue and deliver the next
// shutdown.
func TestANeverListedLockIsNotLost(t *testing.T) {
	h := newHost(t)
	h.times.Verify = 5 * time.Millisecond
	h.login1.HideLocks()
	session := h.connect(t)
	h.inhibit(t, session)
	<-time.After(10 * h.times.Verify) // the session reads the list, which is empty, about ten times
	h.announceShutdown()
	requireAnnounced(t, session)
}

// awaitListReads waits until the session has read logind's list of locks twice more: by the second time it has handled the
// first list.
func awaitListReads(t *testing.T, h *host) {
	t.Helper()
	before := h.login1.Calls("ListInhibitors")
	require.Eventually(t, func() bool { return h.login1.Calls("ListInhibitors") >= before+2 }, testTimeout, time.Millisecond)
}
