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

// run runs the scenarios and writes what they have measured: all of them, or those that
// were done when ctx ended.
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
	story := &story{out: log, quiet: o.quiet}
	story.print("%d rolling updates of %d pods each; the proxy is %s late. This takes about %s.\n",
		len(scenarios), o.settings.Replicas, o.settings.Delay, estimate(o, scenarios).Round(5*time.Second))
	results := make([]rollout.Result, len(scenarios))
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(o.parallel)
	for i, scenario := range scenarios {
		group.Go(func() error {
			result, err := rollout.Run(running, o.settings, scenario, story.tell)
			if err != nil {
				return fmt.Errorf("%s: %w", scenario.Name, err)
			}
			results[i] = result
			c := result.Requests
			story.print("%-17s measured: %d answered, %d refused, %d cut\n", scenario.Name, c.Answered, c.Refused, c.Cut)
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

// estimate is about how long the scenarios take.
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

// story says what happens to the pods, one line for each event.
type story struct {
	quiet bool

	mu  sync.Mutex // keeps lines whole
	out io.Writer
}

func (s *story) tell(scenario, pod, what string, at time.Duration) {
	s.print("%-17s %5.1f s  %s %s\n", scenario, at.Seconds(), pod, what)
}

func (s *story) print(format string, args ...any) {
	if s.quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format, args...)
}
