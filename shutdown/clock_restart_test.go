//go:build go1.25

package shutdown_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The wall clock is stepped by an hour while no agent runs. The next agent keeps the stored
// times of the pods, which are on the clock of the boot. Only the dates in the report are by the wall
// clock.
func TestWallClockIsSteppedBetweenTwoAgents(t *testing.T) {
	date := regexp.MustCompile(`"20[0-9-]+T[^"]+"`)
	for _, step := range []time.Duration{0, -time.Hour, time.Hour} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
				began := time.Now().Add(-22 * time.Second)
				for _, name := range []string{timesFile, progressFile} {
					path := filepath.Join(n.opts.StateDir, name)
					data, err := os.ReadFile(path)
					require.NoError(t, err)
					dates := 0
					data = date.ReplaceAllFunc(data, func(text []byte) []byte {
						dates++
						at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(text))
						require.NoError(t, err)
						return []byte(at.Add(step).Format(`"` + time.RFC3339Nano + `"`))
					})
					require.NotZero(t, dates)
					require.NoError(t, os.WriteFile(path, data, 0o600))
				}
				n.setPods(n.pods[1])
				n.advance(3 * time.Second)
				n.runOnBoot(boot)
				require.False(t, n.m.Admit(nil).Admit)
				require.Equal(t, map[string]int64{"etcd": 5}, n.grantedSeconds(), "what is left of its grace period")
				n.advance(time.Minute)
				kill, _ := n.killer.Kill("etcd")
				require.Equal(t, 30*time.Second, kill.Ended.Sub(began))
				report := n.lastReport()
				require.True(t, began.Add(step).Equal(report.Started), "the stored date")
				require.NotZero(t, report.Ended)
				require.Len(t, report.Pods, 2)
			})
		})
	}
}
