package shutdown

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// countedLock counts how often it was closed.
type countedLock int

func (l *countedLock) Close() error { *l++; return nil }

// The lock of a shutdown is released at the end of the host's time without the drain, once, and
// not if the shutdown was cancelled before.
func TestLockIsReleasedByItself(t *testing.T) {
	for name, test := range map[string]struct {
		before func(t *testing.T, i *hostLock, epoch uint64)
		want   countedLock
	}{
		"nobody releases it":         {func(*testing.T, *hostLock, uint64) {}, 1},
		"the drain has released it":  {func(t *testing.T, i *hostLock, epoch uint64) { require.NoError(t, i.release(t.Context(), epoch)) }, 1},
		"the shutdown was cancelled": {func(_ *testing.T, i *hostLock, _ uint64) { i.renew() }, 0},
		"another shutdown has begun": {func(_ *testing.T, i *hostLock, _ uint64) { i.renew(); i.suspend() }, 0},
		"Run has ended":              {func(t *testing.T, i *hostLock, _ uint64) { require.NoError(t, i.releaseForGood(t.Context())) }, 1},
		"the timetable takes longer": {func(t *testing.T, i *hostLock, epoch uint64) {
			i.releaseAt(t.Context(), epoch, time.Now().Add(time.Hour))
		}, 0},
		"the timetable takes shorter": {func(t *testing.T, i *hostLock, epoch uint64) { i.releaseAt(t.Context(), epoch, time.Now()) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lock countedLock
				i := &hostLock{epoch: 1}
				require.NoError(t, i.take(t.Context(), &lock))
				epoch := i.suspend()
				i.releaseAt(t.Context(), epoch, time.Now().Add(10*time.Second))
				test.before(t, i, epoch)
				<-time.After(time.Minute)
				synctest.Wait()
				require.Equal(t, test.want, lock)
			})
		})
	}
}
