package command

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

const longHelp = `kubegrace-node stops the pods of this machine when it shuts down, as a kubelet would:
in buckets by priority, the lowest first, each pod with its preStop hook and its
grace period. It finds the pods in the container runtime, whatever program has
started them. It starts no pods.

run is the agent, which delays the shutdown of the machine. plan says what a
shutdown of this machine, or of a whole cluster, would do, and status what would
happen on this machine, whichever agent drains it. drain stops the pods of a
machine that stays up, and undrain withdraws the drain. report says how the pods
ended, and uninstall removes what the agent has written. demo plays a whole
shutdown in this terminal.

The exit status is 0 if nothing has failed, and 1 after invalid input or if pods
could not be stopped. plan and status have more: see their --help.`

// commands has what the subcommands run and demo share.
type commands struct {
	signals func() <-chan os.Signal
	gate    featuregate.MutableVersionedFeatureGate
}

// New makes the command kubegrace-node. Only run and demo call signals, to handle SIGTERM and SIGINT
// themselves; all other commands are ended by these signals.
func New(signals func() <-chan os.Signal) (*cobra.Command, error) {
	// Setting a feature gate of --config logs with klog. Drop that: the logger is made later.
	klog.SetLogger(klog.Logger{})
	gate := featuregate.NewFeatureGate()
	if err := errors.Join(lifecycle.AddFeatureGates(gate), shutdown.AddFeatureGates(gate)); err != nil {
		return nil, err
	}
	c := &cobra.Command{
		Use: "kubegrace-node", Short: "Ends the pods of this machine in order when it shuts down",
		Long: longHelp, Version: version(), SilenceUsage: true, SilenceErrors: true,
	}
	c.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	shared := commands{signals: signals, gate: gate}
	c.AddCommand(shared.newRun(), inspect.NewPlan(), inspect.NewStatus(), newDrain(), newUndrain(), newReport(), newUninstall(), shared.newDemo())
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	return c, nil
}

// version returns the versions of this module and of Go, and the platform.
func version() string {
	module := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version
	}
	return fmt.Sprintf("%s (%s, %s/%s)", module, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// OneLine returns the text of an error on one line. It joins the lines of the error with "; ".
func OneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' }), "; ")
}
