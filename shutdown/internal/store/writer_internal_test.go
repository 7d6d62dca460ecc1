package store

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// A write that is dropped is told at once and not made, though its lag goes on. The next one is.
func TestDroppedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls call.Group
		f := &folder{dir: t.TempDir(), decided: make(chan struct{})}
		_, err := f.lock(t.Context(), &calls)
		require.NoError(t, err)
		w := &writer{calls: &calls, folder: f}
		first := w.save(time.Minute, func() error { panic("made") })
		synctest.Wait()
		w.drop(errClosed)
		_, err = first.Await(t.Context(), time.Now())
		require.ErrorIs(t, err, errClosed)
		_, err = w.save(time.Hour, func() error { return nil }).Wait(t.Context())
		require.NoError(t, err)
		require.Empty(t, calls.Wait(nil))
		require.NoError(t, f.unlock())
	})
}
