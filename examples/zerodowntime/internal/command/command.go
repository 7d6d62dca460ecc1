package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/backend"
	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/show"
)

const long = `zerodowntime shows what a preStop sleep is for. It runs a small service, web
servers as processes behind a reverse proxy, uses it, and replaces all its pods
as a Deployment does. The proxy learns late which pods end, as kube-proxy and
every load balancer do; --delay says how late. Pods are ended by kubegrace:
preStop sleep, SIGTERM, and SIGKILL when the grace is over.

It does so in several ways, at the same time, and counts the requests that fail:

  no-sleep          short requests, pods without a preStop sleep
  sleep             short requests, pods with one
  long-requests     long-running requests, pods with a sleep and enough grace
  short-grace       the same, where the pods are deleted with less grace
  websockets-cut    websockets, a sleep, and servers that do not close them
  websockets-drain  websockets, a sleep, and servers that close them with notice

In the end it says what to set, and why, by the figures that it has measured.
Ctrl-C ends everything that it has started.`

const example = `  # All of it, with a proxy that is 1.5 s late
  zerodowntime

  # Your own load balancer is 10 s late: is a sleep of 5 s enough?
  zerodowntime --scenario no-sleep,sleep --delay 10s

  # For a program, and as a picture
  zerodowntime -o json > measured.json
  zerodowntime --picture measured.svg`

// ErrInterrupted means that a signal has ended the program before it was done.
var ErrInterrupted = errors.New("interrupted")

// options are the values of the command line flags.
type options struct {
	settings  rollout.Settings
	scenarios []string
	output    string
	picture   string
	parallel  int
	quiet     bool
}

// New makes the command. It writes the results to out, and a line for each event to log.
func New(out, log io.Writer) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:           "zerodowntime",
		Short:         "Measures what users notice of a rolling update, with and without a preStop sleep",
		Long:          long,
		Example:       example,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the program at once, and its backends follow
			return run(ctx, o, out, log)
		},
	}
	c.CompletionOptions.HiddenDefaultCmd = true
	c.SetOut(out)
	c.SetErr(log)
	f, s := c.Flags(), &o.settings
	f.SortFlags = false
	f.StringSliceVar(&o.scenarios, "scenario", rollout.Names(), "the `names` of the scenarios to run")
	f.DurationVar(&s.Delay, "delay", 1500*time.Millisecond, "how late the proxy learns of a change of the endpoints")
	f.Int64Var(&s.SleepSeconds, "sleep", 5, "the preStop sleep, in `seconds`")
	f.Int64Var(&s.GraceSeconds, "grace", 30, "the pods' terminationGracePeriodSeconds, in `seconds`")
	f.Int64Var(&s.ShortGraceSeconds, "short-grace", 5, "the grace of the deletes of short-grace, in `seconds`")
	f.DurationVar(&s.Task, "task", 8*time.Second, "how long a long-running request takes")
	f.IntVar(&s.Replicas, "backends", 3, "how many pods there are")
	f.IntVar(&s.Rate, "rate", 100, "how many short requests are sent in a second; of long ones, a tenth")
	f.IntVar(&s.Websockets, "websockets", 12, "how many websockets are open")
	f.DurationVar(&s.MinReady, "min-ready", time.Second, "how long a new pod is ready before an old one is deleted")
	f.IntVar(&o.parallel, "parallel", len(rollout.Names()), "how many scenarios run at the same time")
	f.StringVarP(&o.output, "output", "o", "text", "the `format` of what was measured: text or json")
	f.StringVar(&o.picture, "picture", "", "draw the charts into this `file` as well, a .svg or a .png")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not say what happens to the pods meanwhile")
	c.AddCommand(newBackend())
	return c
}

// newBackend makes the hidden command that runs a backend. The processes of the pods run it.
func newBackend() *cobra.Command {
	var opts backend.Options
	c := &cobra.Command{
		Use:    "backend",
		Short:  "Is one of the web servers",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			signal.Ignore(os.Interrupt) // Ctrl-C signals the backends, too; the program ends them when it ends
			stop, done := signal.NotifyContext(c.Context(), syscall.SIGTERM)
			defer done()
			return backend.Run(stop, opts, os.Stdin, os.Stdout)
		},
	}
	c.Flags().BoolVar(&opts.CloseWebsockets, "close-websockets", false, "close websockets with notice")
	c.Flags().DurationVar(&opts.CloseOver, "close-over", 0, "over how long they are closed")
	return c
}

// check returns all that is wrong with the flags.
func (o *options) check() error {
	errs := []error{o.settings.Validate()}
	for _, name := range o.scenarios {
		if !slices.Contains(rollout.Names(), name) {
			errs = append(errs, fmt.Errorf("--scenario: there is no %q; there are %s", name, strings.Join(rollout.Names(), ", ")))
		}
	}
	if len(o.scenarios) == 0 {
		errs = append(errs, errors.New("--scenario: name one at least"))
	}
	if o.output != "text" && o.output != "json" {
		errs = append(errs, fmt.Errorf("--output: %q is neither text nor json", o.output))
	}
	if o.picture != "" && !slices.Contains([]string{".svg", ".png"}, filepath.Ext(o.picture)) {
		errs = append(errs, fmt.Errorf("--picture: %q is neither a .svg nor a .png", o.picture))
	}
	if info, err := os.Stat(filepath.Dir(o.picture)); err != nil {
		errs = append(errs, fmt.Errorf("--picture: %w", err)) // found out now, not after the measurement
	} else if !info.IsDir() {
		errs = append(errs, fmt.Errorf("--picture: %s is no folder", filepath.Dir(o.picture)))
	}
	if o.parallel < 1 {
		errs = append(errs, fmt.Errorf("--parallel must be 1 at least, not %d", o.parallel))
	}
	return errors.Join(errs...)
}

// write writes the results to out, and to a picture if there is a flag for it.
func (o *options) write(out io.Writer, results []rollout.Result, interrupted bool) error {
	var err error
	if o.output == "json" {
		err = show.JSON(out, results, o.settings.Delay, interrupted)
	} else if len(results) > 0 {
		err = show.Text(out, results, o.settings.Delay, styleOf(out))
	}
	if o.picture == "" || len(results) == 0 {
		return err
	}
	var picture bytes.Buffer
	if drawErr := show.Picture(&picture, results, strings.TrimPrefix(filepath.Ext(o.picture), ".")); drawErr != nil {
		return errors.Join(err, drawErr)
	}
	return errors.Join(err, os.WriteFile(o.picture, picture.Bytes(), 0o644))
}

// styleOf returns the style of text for out. Only a terminal gets colours, unless NO_COLOR or
// TERM=dumb is set.
func styleOf(out io.Writer) show.Style {
	style := show.Style{Width: 80, ASCII: os.Getenv("TERM") == "dumb"}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			style.Width = min(width-1, 120)
		}
		style.Color = !style.ASCII && os.Getenv("NO_COLOR") == ""
	}
	return style
}
