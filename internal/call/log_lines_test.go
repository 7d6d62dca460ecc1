//go:build go1.25

package call_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/call"
)

// The write of the first of 100 lines blocks. Write returns all the same. When the first line is read, all lines are
// written in order, and so is a line that comes later.
func TestLogLinesKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written []int
		lines, isRead := call.LogLines{Calls: &call.Group{}}, make(chan struct{})
		for i := range 100 {
			lines.Write(func() {
				<-isRead
				written = append(written, i)
			})
		}
		synctest.Wait()
		require.Empty(t, written)
		close(isRead)
		require.Empty(t, lines.Calls.Wait(nil))
		lines.Write(func() { written = append(written, 100) })
		synctest.Wait()
		require.Len(t, written, 101)
		require.IsIncreasing(t, written)
	})
}
