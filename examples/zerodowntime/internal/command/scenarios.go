package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
)

// run runs the chosen scenarios and writes their results. When ctx ends, it writes the results
// of the scenarios that are done.
func run(ctx context.Context, o options, out, log io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("failed to find this program, which the backends are made of: %w", err)
	}
	o.settings.Backend = []string{self, "backend"}
	scenarios := slices.DeleteFunc(rollout.Scenarios(o.settings), func(s rollout.Scenario) bool { return !slices.Contains(o.scenarios, s.Name) })
	events := &eventLog{out: log, quiet: o.quiet}
	events.printf("%s of %s each; the proxy is %s late. This takes about %s.\n",
		plural(len(scenarios), "rolling update"), plural(o.settings.Replicas, "pod"), o.settings.Delay, estimate(o, scenarios).Round(5*time.Second))
	results := make([]rollout.Result, len(scenarios))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(o.parallel)
	for i, scenario := range scenarios {
		group.Go(func() error {
			result, err := rollout.Run(groupCtx, o.settings, scenario, events.progress)
			if err != nil {
				return fmt.Errorf("%s: %w", scenario.Name, err)
			}
			results[i] = result
			c := result.Requests
			events.printf("%-17s measured: %d answered, %d refused, %d cut\n", scenario.Name, c.Answered, c.Refused, c.Cut)
			return nil
		})
	}
	err = group.Wait()
	interrupted := ctx.Err() != nil
	if err != nil && !interrupted {
		return err
	}
	done := slices.DeleteFunc(results, func(r rollout.Result) bool { return r.Scenario == "" })
	err = o.write(out, done, interrupted)
	if interrupted {
		err = errors.Join(fmt.Errorf("%w: %d of %d rolling updates were measured", ErrInterrupted, len(done), len(scenarios)), err)
	}
	return err
}

// estimate returns about how long the scenarios take.
func estimate(o options, scenarios []rollout.Scenario) time.Duration {
	var longest, sum time.Duration
	for _, scenario := range scenarios {
		s := o.settings
		one := 2*s.Delay + 3*time.Second + time.Duration(s.Replicas)*s.MinReady + time.Duration(scenario.SleepSeconds)*time.Second
		if scenario.Load == rollout.Tasks {
			one += 3 * s.Task
		}
		longest, sum = max(longest, one), sum+one
	}
	return max(longest, sum/time.Duration(o.parallel))
}

// plural returns a number of things in words, as in "1 pod" and "2 pods".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// eventLog prints one line for each event of the pods.
type eventLog struct {
	quiet bool // nothing is printed

	mu  sync.Mutex // guards out
	out io.Writer
}

// progress is a [rollout.Progress].
func (l *eventLog) progress(scenario, pod, event string, at time.Duration) {
	l.printf("%-17s %5.1f s  %s %s\n", scenario, at.Seconds(), pod, event)
}

func (l *eventLog) printf(format string, args ...any) {
	if l.quiet {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, format, args...)
}
