//go:build go1.25

package call_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/call"
)

// neverGiveUp makes Group.Wait wait until all functions have ended.
var neverGiveUp <-chan struct{}

// Wait returns immediately if no function of the group is running: before a first function was started, and after it has ended.
func TestWaitForAnIdleGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group call.Group
		require.Empty(t, group.Wait(neverGiveUp))
		group.Go(func() string { return "one" }, func() {})
		require.Empty(t, group.Wait(neverGiveUp))
		require.Empty(t, group.Wait(neverGiveUp))
	})
}

// Two callers wait for a group. A second function starts during the wait, and both callers wait for it too.
func TestWaitForAllFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group call.Group
		began := time.Now()
		group.Go(func() string { return "first" }, func() {
			<-time.After(2 * time.Second)
			group.Go(func() string { return "second" }, func() { <-time.After(3 * time.Second) })
		})
		waited := make(chan []string, 2)
		for range 2 {
			go func() { waited <- group.Wait(neverGiveUp) }()
		}
		require.Empty(t, <-waited)
		require.Empty(t, <-waited)
		require.Equal(t, (2+3)*time.Second, time.Since(began))
	})
}

// A function is started after the first one has ended, and Wait has returned. A second Wait waits for it too, 1 s.
func TestWaitForAGroupThatRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group call.Group
		for range 2 {
			began := time.Now()
			group.Go(func() string { return "one" }, func() { <-time.After(time.Second) })
			require.Empty(t, group.Wait(neverGiveUp))
			require.Equal(t, time.Second, time.Since(began))
		}
	})
}

// Wait gives up after 1 s while four functions are still running, and returns their names, sorted. One of the four has another
// name then than at its start.
func TestWaitReturnsTheNamesOfRunningFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group call.Group
		end, changingName := make(chan struct{}), "before"
		for _, name := range []string{"c", "a", "c"} {
			group.Go(func() string { return name }, func() { <-end })
		}
		group.Go(func() string { return changingName }, func() { <-end })
		group.Go(func() string { return "has ended" }, func() {})
		changingName = "d"

		giveUp := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(giveUp) })
		began := time.Now()
		require.Equal(t, []string{"a", "c", "c", "d"}, group.Wait(giveUp))
		require.Equal(t, time.Second, time.Since(began))
		close(end)
		require.Empty(t, group.Wait(neverGiveUp))
	})
}

// Wait does not wait for a function that ended its goroutine.
func TestWaitForAFunctionThatEndedItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group call.Group
		group.Go(func() string { return "exits" }, runtime.Goexit)
		require.Empty(t, group.Wait(neverGiveUp))
	})
}

// A group is closed while a function of it runs, and while a caller is between EnterIfOpen and leave. EnterIfOpen now fails.
// But the function and the caller may start more functions, and Wait waits for these too.
func TestClosedGroupAdmitsOnlyItsOwnWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group call.Group
		name := func() string { return "one" }
		began := time.Now()
		leave, isOpen := group.EnterIfOpen(name)
		require.True(t, isOpen)
		group.Go(name, func() {
			<-time.After(time.Second)
			group.Go(name, func() { <-time.After(time.Second) })
		})
		for range 2 { // closing it again changes nothing
			group.Close()
			_, isOpen = group.EnterIfOpen(name)
			require.False(t, isOpen)
		}

		// The caller starts a function of 2 s, and leaves at 5 s.
		time.AfterFunc(5*time.Second, func() {
			group.Go(name, func() { <-time.After(2 * time.Second) })
			leave()
		})
		require.Empty(t, group.Wait(neverGiveUp))
		require.Equal(t, (5+2)*time.Second, time.Since(began))
	})
}
