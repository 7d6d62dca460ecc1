//go:build unix

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/units"
	"github.com/kubegrace/kubegrace/shutdown/logind"
)

// The names of the files that package shutdown writes into a state folder.
const (
	stateFilePrefix = "graceful_node_shutdown_"
	lockFile        = ".graceful_node_shutdown_lock"
	tempFilePrefix  = ".tmp-" // of a file that remains if the agent is killed while it writes
)

// uninstaller removes what the agent has written on a host.
type uninstaller struct {
	hostRoot, stateDir string
	removeState        bool
	// say prints a line.
	say func(format string, args ...any)
}

// newUninstall makes kubegrace-node uninstall.
func newUninstall() *cobra.Command {
	u := &uninstaller{}
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Removes what the agent has left on this host: its settings of logind and, if asked for, its state",
		Long: `uninstall removes the drop-in file by which the agent has raised the time for which
systemd-logind lets it delay a shutdown, and tells logind. Units that the agent
has stopped are started again. The state folder is kept unless --remove-state is
given. Pods run on.

Stop the agent first (systemctl disable --now kubegrace-node): one that runs writes
the file again. What is gone already is no error.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			u.say = func(format string, args ...any) {
				_, _ = fmt.Fprintf(c.OutOrStdout(), format+"\n", args...) // an error of the output does not undo the removal
			}
			return u.run(c.Context())
		},
	}
	c.Flags().StringVar(&u.hostRoot, "host-root", "", "`folder` that has the /etc and /run of the host; empty means /")
	c.Flags().StringVar(&u.stateDir, "state-dir", defaultStateDir, "`folder` that keeps the state of a shutdown, as the agent was given it")
	c.Flags().BoolVar(&u.removeState, "remove-state", false, "remove the state from --state-dir, with the report of the last shutdown")
	return c
}

// run removes what the agent has written. It first locks the state folder, which fails while an agent runs: the agent would
// write everything again.
func (u *uninstaller) run(ctx context.Context) (err error) {
	lock, err := lockState(u.stateDir)
	if err != nil {
		return err
	}
	if lock != nil {
		defer func() { err = errors.Join(err, lock.Close()) }()
	}
	startErr := u.startUnits(ctx)
	switch hasState := lock != nil; {
	case hasState && u.removeState:
		err = u.removeStateFiles()
	case hasState:
		u.say("%s is kept, with the state of shutdowns; --remove-state removes it.", u.stateDir)
	}
	return errors.Join(startErr, err, u.removeDropIn(ctx))
}

// startUnits starts the units again that the agent has stopped. A file that the agent has left under /run names them.
func (u *uninstaller) startUnits(ctx context.Context) error {
	keeper, err := units.New(filepath.Join("/", u.hostRoot, "run"), nil) // nil: it stops no units
	stopped := keeper.Stopped()
	if err != nil || stopped == nil {
		return err
	}
	if err := keeper.Start(ctx); err != nil {
		return err
	}
	for _, unit := range stopped.Units {
		u.say("Started %s again, which the agent had stopped.", unit)
	}
	return nil
}

// lockState locks a state folder in the same way as package shutdown. It fails if an agent uses the folder.
// The file is nil if there is no state.
func lockState(dir string) (*os.File, error) {
	if dir == "" {
		return nil, nil //nolint:nilnil // see above
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // see above
	}
	if err != nil {
		return nil, fmt.Errorf("failed to look for an agent: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fmt.Errorf("an agent uses %s, stop it first: %w", dir, err)
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// removeStateFiles removes the agent's files from the state folder, and the folder if it is then empty.
func (u *uninstaller) removeStateFiles() error {
	entries, err := os.ReadDir(u.stateDir)
	for _, entry := range entries {
		name := strings.TrimPrefix(entry.Name(), tempFilePrefix)
		nameHas := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		isFileOfAgent := slices.ContainsFunc([]string{stateFilePrefix, lockFile, statefile.Prefix}, nameHas)
		if isFileOfAgent {
			err = errors.Join(err, os.RemoveAll(filepath.Join(u.stateDir, entry.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("failed to remove the state: %w", err)
	}
	if os.Remove(u.stateDir) != nil { // it has other files, or something is mounted on it
		u.say("Removed the state of shutdowns from %s. The folder is kept: it is in use, or has other files.", u.stateDir)
		return nil //nolint:nilerr // the line above says it
	}
	u.say("Removed %s, with the state of shutdowns.", u.stateDir)
	return nil
}

// removeDropIn removes the agent's drop-in file of logind and has logind read its files again. It also removes the folder of
// logind's drop-ins if that is empty then.
func (u *uninstaller) removeDropIn(ctx context.Context) error {
	source, err := logind.New(logind.Options{HostRoot: u.hostRoot})
	if err != nil {
		return err
	}
	err = source.RemoveDropIn(ctx)
	for _, dir := range []string{"/etc/systemd/logind.conf.d", "/run/systemd/logind.conf.d"} {
		_ = os.Remove(filepath.Join("/", u.hostRoot, dir)) // fails if there are other files
	}
	if err == nil {
		u.say("systemd-logind has no settings of this agent.")
	}
	return err
}
