//go:build go1.25

package shutdown

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/call"
)

// Up to ten calls that hang are named. If there are more, the first ten names are given.
func TestHangingCallsAreNamed(t *testing.T) {
	for n, want := range map[int]string{
		0: "", 2: "calls that have not returned: call 0, call 1",
		10: "calls that have not returned: call 0, call 1, call 2, call 3, call 4, call 5, call 6, call 7, call 8, call 9",
		11: "11 calls have not returned, among them call 0, call 1, call 10, call 2, call 3, call 4, call 5, call 6, call 7, call 8",
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls call.Group
			over := make(chan struct{})
			defer close(over)
			for i := range n {
				calls.Go(func() string { return "call " + strconv.Itoa(i) }, func() { <-over })
			}
			began := time.Now()
			err := hangingError(&calls, began.Add(3*time.Second))
			if want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, want)
			require.Equal(t, 3*time.Second, time.Since(began))
		})
	}
}
