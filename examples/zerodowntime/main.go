package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := newCommand(loopbackNetwork(), os.Stdout, os.Stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "zerodowntime: %v\n", err)
		os.Exit(1)
	}
}

const long = `zerodowntime measures how many HTTP requests a rolling update loses. It runs a
service of three pods behind a load balancer and replaces the pods as a
Deployment does, with five settings at the same time: without a preStop sleep,
with one, with one that the grace period cuts off, and with a proxy in front of
the web server, as a container and as a sidecar.

The load balancer learns late that a pod ends, as kube-proxy does.`

// newCommand returns the command. Its servers and clients use this network.
func newCommand(network network, out, log io.Writer) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use: "zerodowntime", Short: "Measures how many HTTP requests a rolling update loses", Long: long,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error { return run(c.Context(), network, f, out, log) },
	}
	c.CompletionOptions.DisableDefaultCmd = true
	c.SetOut(out)
	c.SetErr(log)
	c.Flags().DurationVar(&f.delay, "delay", 1500*time.Millisecond, "how late the load balancer learns of pods that start or end")
	c.Flags().Uint16Var(&f.sleep, "sleep", 5, "the preStop sleep, in `seconds`")
	c.Flags().StringVar(&f.picture, "picture", "", "draw the result into this `file`, as SVG")
	return c
}

// flags has the values of the flags.
type flags struct {
	delay   time.Duration
	sleep   uint16 // seconds
	picture string // the file; "": no picture is drawn
}

// run measures all scenarios, writes a table of the results to out, and draws the picture.
func run(ctx context.Context, network network, f flags, out, log io.Writer) error {
	if f.delay < 0 || f.sleep == 0 {
		return errors.New("--delay must not be negative, and --sleep must be at least 1")
	}
	// The load balancer learns of the first pods, clients send requests, the pods are replaced, the last pod sleeps,
	// and the load balancer learns of the last change while clients still send requests.
	takes := 2*f.delay + 2*margin + replicas*minReady + time.Duration(f.sleep)*time.Second
	compared := scenarios(int64(f.sleep))
	fmt.Fprintf(log, "%d rolling updates at the same time; this takes about %.0f s\n", len(compared), takes.Seconds())
	results, err := measureAll(ctx, network, f.delay, compared)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, renderTable(results)); err != nil {
		return err
	}
	if f.picture == "" {
		return nil
	}
	svg, err := drawPicture(results, f.delay)
	if err != nil {
		return err
	}
	return os.WriteFile(f.picture, svg, 0o644)
}

// measureAll measures a rolling update for each scenario, all at the same time, and returns the results in the
// order of the scenarios. The first failure ends all of them.
func measureAll(ctx context.Context, network network, delay time.Duration, scenarios []scenario) ([]result, error) {
	results := make([]result, len(scenarios))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, s := range scenarios {
		group.Go(func() error {
			var err error
			if results[i], err = measure(groupCtx, network, delay, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
			return nil
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // the signal: all other errors only follow from it
	}
	return results, err
}

// renderTable returns the results as a table, with a row for each scenario.
func renderTable(results []result) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"scenario", "requests", "lost", "longest stop"})
	for _, r := range results {
		t.AppendRow(table.Row{r.scenario, r.sent, r.lost, fmt.Sprintf("%.1f s", r.longestStop.Seconds())})
	}
	return t.Render()
}
