//go:build linux && go1.25

package shutdown_test

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// pairsAll is the environment variable that has all pairs and all kills run: "all".
	pairsAll = "KUBEGRACE_PAIRS"
	// pairsSeed is the environment variable with the seed of what the names of the subtests leave
	// open. The order in which goroutines run at the same moment does not depend on it.
	pairsSeed = "KUBEGRACE_PAIRS_SEED"
)

// pairsMoments are the moments of a drain at which the first of two inputs comes, in milliseconds.
var pairsMoments = []int{0, 1, 4, 12, 30, 70, 160, 350, 900, 1600, 2700, 4100, 5700, 7300, 9600, 12100, 14300, 17000, 24000, 36500}

// Two inputs in either order, at any moment of a drain, end in one report for each shutdown, with each
// pod once; the API server is told exactly of the ends that were reached; nobody is killed with less
// than its grace period where the host's time was there; no lock is held past H; admission is as
// testdata/states.md says.
func TestPairs(t *testing.T) {
	seed, every := pairsSetting(t)
	dir, n := memoryFolder(t), uint64(0)
	for first := range pairsSteps {
		for second := range pairsSteps {
			for _, moment := range pairsMoments {
				for base := range pairsBases {
					if n++; (n+seed)%every != 0 {
						continue
					}
					name := fmt.Sprintf("%s,%s,%d,%s", pairsSteps[first].name, pairsSteps[second].name, moment, pairsBases[base].name)
					runPairs(t, name, seed, dir, func(w *pairsWorld) {
						w.run(base, time.Duration(moment)*time.Millisecond, first, second)
					})
				}
			}
		}
	}
}

// pairsSetting returns the seed, and that one in so many pairs is run. Under the race detector, which
// takes six times as long, these are few, because make test runs the others.
func pairsSetting(t *testing.T) (seed, every uint64) {
	switch seed, every = 1, 10; {
	case os.Getenv(pairsAll) == "all": // a gate must not draw its tests
		seed, every = uint64(time.Now().UnixNano())%1_000_000, 1
	case underRace:
		every = 50
	}
	if text := os.Getenv(pairsSeed); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s=%d %s=all go test -run '^%s$/^<name>$' ./shutdown", pairsSeed, seed, pairsAll, t.Name())
		}
	})
	return seed, every
}

// drawnRuns returns how many runs a test draws that has no list of them.
func drawnRuns(every uint64) int {
	if every == 1 {
		return 20_000
	}
	return 3_000 / int(every)
}

// runPairs runs one run. Its name and the seed make all that is random in it.
func runPairs(t *testing.T, name string, seed uint64, dir string, run func(*pairsWorld)) {
	runDrawn(t, name, drawOf(name, seed), dir, run)
}

// drawOf returns what makes all that is random in a run.
func drawOf(name string, seed uint64) uint64 {
	of := fnv.New64()
	_, _ = fmt.Fprintf(of, "%s %d", name, seed)
	return of.Sum64()
}

func runDrawn(t *testing.T, name string, draw uint64, dir string, run func(*pairsWorld)) {
	runWorld(t, name, dir, func(t *testing.T, dir string) *pairsWorld { return newPairsWorld(t, draw, dir) }, run)
}

func runWorld(t *testing.T, name, dir string, newWorld func(*testing.T, string) *pairsWorld, run func(*pairsWorld)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, dir)
			run(w)
			if len(w.violations) > 0 {
				t.Errorf("%s\n%s", strings.Join(w.violations, "\n"), strings.Join(w.story, "\n"))
			}
		})
	})
}

// memoryFolder returns a folder in memory, or on disk if there is no /dev/shm. The runs write and sync
// thousands of files, and the speed of a disk is not their subject.
func memoryFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "pairs")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
