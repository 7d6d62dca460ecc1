package kills_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// A kill that fails again and again is told of when it fails first and when it is given up,
// not for each attempt: there may be many, of many pods.
func TestFailingKillIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, hostGoesOn := context.WithTimeout(t.Context(), 30*time.Second)
		defer hostGoesOn()
		var attempts, failed, ended int
		killing := &kills.Killing{
			Context: ctx,
			Calls:   &call.Group{},
			Halted:  func() bool { return false },
			Seconds: func(*v1.Pod) int64 { return 5 },
			Kill: func(context.Context, *v1.Pod, int64) (kills.Result, error) {
				attempts++
				return kills.Result{}, errors.New("the runtime is away")
			},
			Final:     func(error) bool { return false },
			Earlier:   func(types.UID) *kills.Kill { return nil },
			Signalled: func(*kills.Kill) {},
			Failed:    func(*kills.Kill, error) { failed++ },
			Ended:     func(*kills.Kill) { ended++ },
		}
		picked := kills.NewRoster(time.Now()).Pick([]*v1.Pod{{}}, 0, func(*v1.Pod) (int32, bool) { return 0, true })
		_, err := killing.Start(picked).Done.Wait(t.Context())
		require.NoError(t, err)
		require.Greater(t, attempts, 10)
		require.Equal(t, 1, failed)
		require.Equal(t, 1, ended)
	})
}
