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

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/shutdown/logind"
)

// The names of the files that package shutdown writes into a state folder.
const (
	stateFilePrefix = "graceful_node_shutdown_"
	tempFilePrefix  = ".tmp-" + stateFilePrefix // remains if the agent was killed while it wrote
	lockFile        = ".graceful_node_shutdown_lock"
)

// uninstaller removes from a host what the agent has written to it.
type uninstaller struct {
	out                io.Writer
	hostRoot, stateDir string
	removeState        bool
}

func newUninstall(out io.Writer) *cobra.Command {
	u := &uninstaller{out: out}
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Removes what the agent has left on this host: its settings of logind and, if asked for, its state",
		Long: `uninstall removes the drop-in file by which the agent has raised the time that
systemd-logind lets it hold back a shutdown, and tells logind. The state folder
is kept unless --remove-state is given. Pods run on.

Stop the agent first (systemctl disable --now nodeagent): one that runs writes
the file again. What is gone already is no error.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return u.run(c.Context()) },
	}
	c.Flags().StringVar(&u.hostRoot, "host-root", "", "`folder` that has the /etc and /run of the host; empty means /")
	c.Flags().StringVar(&u.stateDir, "state-dir", "", "`folder` that keeps the state of a shutdown, as the agent was given it")
	c.Flags().BoolVar(&u.removeState, "remove-state", false, "remove the state from --state-dir, with the report of the last shutdown")
	return c
}

// run removes the state files first, because that fails while an agent runs.
func (u *uninstaller) run(ctx context.Context) error {
	if u.removeState && u.stateDir == "" {
		return field.Required(field.NewPath("--state-dir"), "with --remove-state")
	}
	if err := u.removeStateFiles(); err != nil {
		return err
	}
	return u.removeDropIn(ctx)
}

// removeDropIn removes the drop-in file of logind, and prints its path.
func (u *uninstaller) removeDropIn(ctx context.Context) error {
	source, err := logind.New(logind.Options{HostRoot: u.hostRoot})
	if err != nil {
		return err
	}
	before := u.existingDropIns()
	err = source.RemoveDropIn(ctx)
	after := u.existingDropIns()
	for _, file := range before {
		if !slices.Contains(after, file) {
			u.print("Removed %s.", file)
		}
	}
	if err != nil {
		return err
	}
	if len(before) == 0 {
		u.print("systemd-logind has no settings of this agent.")
		return nil
	}
	u.print("systemd-logind goes by its other settings again.")
	return nil
}

// existingDropIns returns the paths at which there is a drop-in file of the agent.
func (u *uninstaller) existingDropIns() []string {
	var existing []string
	for _, dir := range []string{"/etc/systemd/logind.conf.d", "/run/systemd/logind.conf.d"} {
		file := filepath.Join("/", u.hostRoot, dir, logind.DropInName)
		if _, err := os.Lstat(file); err == nil {
			existing = append(existing, file)
		}
	}
	return existing
}

// removeStateFiles removes the files of shutdowns from the state folder, or prints that
// they are kept. It removes the folder if it is empty then.
func (u *uninstaller) removeStateFiles() (err error) {
	if u.stateDir == "" {
		return nil
	}
	lock, err := lockState(u.stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		u.print("%s has no state of shutdowns.", u.stateDir)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if !u.removeState {
		u.print("%s is kept, with the state of shutdowns; --remove-state removes it.", u.stateDir)
		return nil
	}
	entries, err := os.ReadDir(u.stateDir)
	if err != nil {
		return fmt.Errorf("failed to list the state: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if name != lockFile && name != api.PlanFile && !strings.HasPrefix(name, stateFilePrefix) && !strings.HasPrefix(name, tempFilePrefix) {
			continue
		}
		if err := os.Remove(filepath.Join(u.stateDir, name)); err != nil {
			return fmt.Errorf("failed to remove the state: %w", err)
		}
	}
	return u.removeStateDir()
}

// removeStateDir removes the state folder, unless there are other files in it.
func (u *uninstaller) removeStateDir() error {
	err := os.Remove(u.stateDir)
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

func (u *uninstaller) print(format string, args ...any) {
	_, _ = fmt.Fprintf(u.out, format+"\n", args...) // an error of the output does not undo the removal
}
