//go:build unix

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/units"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
	"github.com/kubegrace/kubegrace/shutdown/logind"
)

// The names of the files that package shutdown writes into a state folder.
const (
	stateFilePrefix = "graceful_node_shutdown_"
	lockFile        = ".graceful_node_shutdown_lock"
	tempFilePrefix  = ".tmp-" // of what remains if the agent was killed while it wrote
)

// runtimeTimeout bounds the question what runs on.
const runtimeTimeout = 5 * time.Second

// uninstaller removes from a host what the agent has written to it.
type uninstaller struct {
	out                          io.Writer
	hostRoot, stateDir, endpoint string
	removeState                  bool
}

func newUninstall(out io.Writer) *cobra.Command {
	u := &uninstaller{out: out}
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Removes what the agent has left on this host: its settings of logind and, if asked for, its state",
		Long: `uninstall removes the drop-in file by which the agent has raised the time that
systemd-logind lets it hold back a shutdown, and tells logind. Units that the agent
has stopped are started again. The state folder is kept unless --remove-state is
given. Pods run on, and it says how many.

Stop the agent first (systemctl disable --now kubegrace-node): one that runs writes
the file again. What is gone already is no error.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return u.run(c.Context()) },
	}
	c.Flags().StringVar(&u.hostRoot, "host-root", "", "`folder` that has the /etc and /run of the host; empty means /")
	c.Flags().StringVar(&u.stateDir, "state-dir", defaultStateDir, "`folder` that keeps the state of a shutdown, as the agent was given it")
	c.Flags().StringVar(&u.endpoint, "container-runtime-endpoint", defaultEndpoint, "`address` of the container runtime, as the agent was given it")
	c.Flags().BoolVar(&u.removeState, "remove-state", false, "remove the state from --state-dir, with the report of the last shutdown")
	return c
}

// run removes the state files first, because that fails while an agent runs.
func (u *uninstaller) run(ctx context.Context) error {
	if u.removeState && u.stateDir == "" {
		return field.Required(field.NewPath("--state-dir"), "with --remove-state")
	}
	if err := u.releaseState(ctx); err != nil {
		return err
	}
	if err := u.removeDropIn(ctx); err != nil {
		return err
	}
	u.sayWhatRunsOn(ctx)
	return nil
}

// releaseState starts stopped units again and removes the state files, unless an agent runs.
func (u *uninstaller) releaseState(ctx context.Context) (err error) {
	if u.stateDir == "" {
		return nil
	}
	lock, err := lockState(u.stateDir)
	switch {
	case err == nil:
		defer func() { err = errors.Join(err, lock.Close()) }()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	keeper, err := units.New(u.stateDir, nil)
	if record := keeper.Stopped(); record != nil {
		if err := keeper.Start(ctx); err != nil {
			return err
		}
		for _, unit := range record.Units {
			u.print("Started %s again, which the agent had stopped.", unit)
		}
	}
	if err != nil {
		return err
	}
	if lock == nil {
		u.print("%s has no state of shutdowns.", u.stateDir)
		return nil
	}
	return u.removeStateFiles()
}

// lockState locks a state folder as package shutdown does. It fails if an agent uses the
// folder. If there is no lock file, the error wraps fs.ErrNotExist.
func lockState(dir string) (io.Closer, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("failed to look for an agent: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fmt.Errorf("an agent uses %s, stop it first: %w", dir, err)
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// removeStateFiles removes the files of shutdowns from the state folder, or prints that
// they are kept. It removes the folder if it is empty then.
func (u *uninstaller) removeStateFiles() error {
	if !u.removeState {
		u.print("%s is kept, with the state of shutdowns; --remove-state removes it.", u.stateDir)
		return nil
	}
	entries, err := os.ReadDir(u.stateDir)
	if err != nil {
		return fmt.Errorf("failed to list the state: %w", err)
	}
	for _, entry := range entries {
		name := strings.TrimPrefix(entry.Name(), tempFilePrefix)
		ours := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if !slices.ContainsFunc([]string{stateFilePrefix, lockFile, statefile.Prefix}, ours) {
			continue
		}
		if err := os.Remove(filepath.Join(u.stateDir, entry.Name())); err != nil {
			return fmt.Errorf("failed to remove the state: %w", err)
		}
	}
	err = os.Remove(u.stateDir)
	switch {
	case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.EBUSY):
		u.print("Removed the state of shutdowns from %s. The folder is kept: it is in use, or has other files.", u.stateDir)
		return nil
	case err != nil:
		return fmt.Errorf("failed to remove the state: %w", err)
	}
	u.print("Removed %s, with the state of shutdowns.", u.stateDir)
	return nil
}

// removeDropIn removes the drop-in file of logind, and prints its path.
func (u *uninstaller) removeDropIn(ctx context.Context) error {
	source, err := logind.New(logind.Options{HostRoot: u.hostRoot})
	if err != nil {
		return err
	}
	files := u.dropIns()
	err = source.RemoveDropIn(ctx)
	for _, file := range files {
		if _, missing := os.Lstat(file); missing != nil {
			u.print("Removed %s.", file)
			_ = os.Remove(filepath.Dir(file)) // the agent has made it; fails if others have files there
		}
	}
	switch {
	case err != nil:
		return err
	case len(files) == 0:
		u.print("systemd-logind has no settings of this agent.")
	default:
		u.print("systemd-logind goes by its other settings again.")
	}
	return nil
}

// dropIns returns the paths at which there is a drop-in file of the agent.
func (u *uninstaller) dropIns() []string {
	var existing []string
	for _, dir := range []string{"/etc/systemd/logind.conf.d", "/run/systemd/logind.conf.d"} {
		file := filepath.Join("/", u.hostRoot, dir, logind.DropInName)
		if _, err := os.Lstat(file); err == nil {
			existing = append(existing, file)
		}
	}
	return existing
}

// sayWhatRunsOn prints how many pods the runtime has, if it can be asked.
func (u *uninstaller) sayWhatRunsOn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	runtime, err := criruntime.Dial(ctx, u.endpoint, criruntime.Options{})
	if err != nil {
		return // an address of another kind
	}
	defer func() { _ = runtime.Close() }() // nothing was changed
	switch pods, err := runtime.Pods(ctx); {
	case err != nil:
		u.print("What runs on is not known: the container runtime does not answer.")
	case len(pods) == 0:
		u.print("No pods run.")
	default:
		u.print("%d pods run on, and nothing stops them in order any more.", len(pods))
	}
}

func (u *uninstaller) print(format string, args ...any) {
	_, _ = fmt.Fprintf(u.out, format+"\n", args...) // an error of the output does not undo the removal
}
