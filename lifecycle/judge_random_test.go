//go:build go1.25

package lifecycle_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

// The environment variables of TestRandomLives: one seed, which is played a hundred times
// because the order of goroutines at the same moment does not depend on it, and the number of
// seeds.
const (
	livesSeed  = "KUBEGRACE_LIVES_SEED"
	livesSeeds = "KUBEGRACE_LIVES_SEEDS"
)

// TestRandomLives calls everything that a Terminator and its lives export, in a random order,
// often at the same time, over a runtime with faults. What holds is judged from the runtime's
// own log.
func TestRandomLives(t *testing.T) {
	seeds, times := uint64(1000), 1
	if text := os.Getenv(livesSeeds); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		seeds = n
	}
	first := uint64(0)
	if text := os.Getenv(livesSeed); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		first, seeds, times = seed, 1, 100
	}
	failed := 0
	for seed := first; seed < first+seeds && failed < 1000000; seed++ {
		for range times {
			if verdict := playSeed(t, seed, times > 1); verdict != "" {
				t.Errorf("%s=%d go test -run '^TestRandomLives$' ./lifecycle\n%s", livesSeed, seed, verdict)
				failed++
				break
			}
		}
	}
}

// What random lives have found and was mended is played again: two attempts with one ID that wait
// for each other until the deadline (23984, 27502), a container whose ID had ended, which
// PostStart names again (16823), two attempts with the ID that a Start has returned (13544, 49897), an ID that is
// used again after its watcher has told an exit (46055, 50324, 36191), a stop that was called
// before the container was there (141904), a proof that was about an earlier start (80792), and a ninth
// attempt that took the place of one to be stopped (143992), and one that was stuck when it was named (397893).
func TestLivesThatWereWrong(t *testing.T) {
	for _, seed := range []uint64{23984, 27502, 16823, 13544, 49897, 46055, 50324, 36191, 141904, 80792, 143992, 397893} {
		for range 20 {
			require.Empty(t, playSeed(t, seed, false), seed)
		}
	}
}

// playSeed returns what was wrong, "" if nothing was.
func playSeed(t *testing.T, seed uint64, logged bool) (verdict string) {
	defer func() {
		if left := recover(); left != nil { // what synctest says of goroutines that are left
			verdict = fmt.Sprint(left)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		j := &judgedRun{
			judgedRuntime: &judgedRuntime{seed: seed, graces: map[string]int64{}, sleepers: map[string]bool{}, podFaults: map[string][]fault{}, told: map[string]int{}, runs: map[string]int{}, made: map[string]int{}},
			ctx:           klog.NewContext(t.Context(), klog.Logger{}), began: time.Now(), misnames: true,
		}
		j.play()
		verdict = strings.Join(j.judge(), "\n")
		if logged && verdict != "" {
			verdict += "\n" + j.log()
		}
	})
	return verdict
}
