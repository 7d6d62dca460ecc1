package command

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nonblocking"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
	"github.com/kubegrace/kubegrace/validation/featuregates"
)

const configUsage = "`file` with a KubeletConfiguration (YAML or JSON), of which shutdownGracePeriod, shutdownGracePeriodCriticalPods, " +
	"shutdownGracePeriodByPodPriority and featureGates are obeyed; it is the agent's own, not the kubelet's"

// shutdownConfig reads and checks the file of --config, and sets in gate the feature gates that the file sets.
// The warnings are lines for people.
func shutdownConfig(file string, gate featuregate.MutableVersionedFeatureGate) (cfg plan.Config, warnings []string, err error) {
	loaded, err := kubeletconfig.Load(file, "")
	if err != nil {
		return plan.Config{}, nil, fmt.Errorf("--config: %w", err)
	}
	unknown, err := kubeletconfig.SetFeatureGates(gate, loaded.FeatureGates)
	if err != nil {
		return plan.Config{}, nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(unknown) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: featureGates: not known here, and without effect: %v", file, unknown))
	}
	if err := validation.ValidateNodeShutdown(loaded.Shutdown, featuregates.Options(gate)); err != nil {
		return plan.Config{}, nil, fmt.Errorf("%s: %w; it has %s", file, err, output.ConfigText(loaded.Shutdown))
	}
	return loaded.Shutdown, warnings, nil
}

// makeStateDir creates the folder of --state-dir if it does not exist, and the lock file in it. It returns an error if the
// folder cannot be used, for example on a read-only file system.
func makeStateDir(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--state-dir: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("--state-dir: %w", err)
	}
	return lock.Close()
}

// screen is where an agent writes its output (view) and its log (logger). close writes what is left, for at most two seconds
// each.
type screen struct {
	view   *view.View
	logger klog.Logger
	close  func()
}

// newScreen returns a screen that never blocks the agent, even if nobody reads the output.
func newScreen(c *cobra.Command, verbosity int) screen {
	out, log := nonblocking.New(c.OutOrStdout()), nonblocking.New(c.ErrOrStderr())
	logConfig := textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(verbosity))
	return screen{view: view.New(out), logger: textlogger.NewLogger(logConfig), close: func() { out.Close(); log.Close() }}
}
