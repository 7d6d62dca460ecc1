//go:build go1.25

package call_test

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/call"
)

// The first of 100 functions blocks. Add returns nevertheless, and Wait names the sequence. When the first function may return,
// all are called in order, and so is a function that is added later.
func TestSequenceKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called []int
		calls, mayReturn := &call.Group{}, make(chan struct{})
		sequence := call.Sequence{Calls: calls, Name: "the logger"}
		for i := range 100 {
			sequence.Add(func() {
				<-mayReturn
				called = append(called, i)
			})
		}
		synctest.Wait()
		require.Empty(t, called)
		giveUp := make(chan struct{})
		close(giveUp)
		require.Equal(t, []string{"the logger"}, calls.Wait(giveUp))

		close(mayReturn)
		require.Empty(t, calls.Wait(neverGiveUp))
		sequence.Add(func() { called = append(called, 100) })
		synctest.Wait()
		require.Len(t, called, 100+1)
		require.IsIncreasing(t, called)
	})
}

// An event recorder that fails a test ends its goroutine (runtime.Goexit). A function that does so does not keep later
// functions from being called: neither one that is waiting already, nor one that is added later.
func TestSequenceGoesOnAfterTheEndOfItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called []int
		calls := &call.Group{}
		sequence := call.Sequence{Calls: calls, Name: "the recorder"}
		sequence.Add(runtime.Goexit)
		sequence.Add(func() { called = append(called, 1) })
		require.Empty(t, calls.Wait(neverGiveUp))
		sequence.Add(func() { called = append(called, 2) })
		require.Empty(t, calls.Wait(neverGiveUp))
		require.Equal(t, []int{1, 2}, called)
	})
}
