// Package seeds plays random tests, one for each seed, so that a failure can be replayed from one number:
//
//	KUBEGRACE_SIM_SEEDS=1000000 go test -run TestSimulator -timeout 0 ./lifecycle
//	KUBEGRACE_SIM_SEED=4711 go test -run TestSimulator -v ./lifecycle # one seed, with its story
package seeds

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/kubegrace/kubegrace/internal/need"
)

// Play plays the seeds from 1 to number, fewer with -short, in several goroutines. Each seed for which play returns an error
// fails the test. Play logs the story of the first failed seed, and stops after ten failures. It returns how many seeds were
// to be played. The environment variable KUBEGRACE_SIM_SEEDS replaces number, and KUBEGRACE_SIM_SEED is the only seed.
func Play(t *testing.T, number uint64, play func(t *testing.T, seed uint64) (story func() string, err error)) uint64 {
	t.Helper()
	if seed := variable(t, "KUBEGRACE_SIM_SEED"); seed > 0 {
		story, err := play(t, seed)
		t.Logf("seed %d\n%s", seed, story())
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		return 1
	}
	const fewer = 1_000
	if need.Shortened(t, fmt.Sprintf("%d of %d seeds of %s", number-fewer, number, t.Name())) {
		number = fewer
	}
	number = cmp.Or(variable(t, "KUBEGRACE_SIM_SEEDS"), number)
	var next, failed atomic.Uint64
	work := func(t *testing.T) {
		t.Parallel()
		for seed := next.Add(1); seed <= number && failed.Load() < 10; seed = next.Add(1) {
			story, err := play(t, seed)
			if err == nil {
				continue
			}
			if isFirst := failed.Add(1) == 1; isFirst {
				t.Logf("seed %d\n%s", seed, story())
			}
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	t.Run("seeds", func(t *testing.T) { // returns when all workers have ended
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run("worker "+strconv.Itoa(worker), work)
		}
	})
	return number
}

// variable returns the number in an environment variable; 0 if it is empty.
func variable(t *testing.T, name string) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
