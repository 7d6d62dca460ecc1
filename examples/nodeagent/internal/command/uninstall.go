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

// The files that package shutdown keeps in a state folder.
const (
	stateFiles = "graceful_node_shutdown_"
	lockFile   = ".graceful_node_shutdown_lock"
	tornFiles  = ".tmp-" + stateFiles // of writes that were cut off
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
	c.Flags().StringVar(&u.hostRoot, "host-root", "", "`folder` under which the host's own /etc and /run are to be seen; empty means /")
	c.Flags().StringVar(&u.stateDir, "state-dir", "", "`folder` that keeps the state of a shutdown, as the agent was given it")
	c.Flags().BoolVar(&u.removeState, "remove-state", false, "remove the state from --state-dir, with the report of the last shutdown")
	return c
}

// run removes the state first: that fails while an agent runs.
func (u *uninstaller) run(ctx context.Context) error {
	if u.removeState && u.stateDir == "" {
		return field.Required(field.NewPath("--state-dir"), "with --remove-state")
	}
	if err := u.state(); err != nil {
		return err
	}
	return u.dropIn(ctx)
}

// dropIn removes the drop-in, and says which file that was.
func (u *uninstaller) dropIn(ctx context.Context) error {
	source, err := logind.New(logind.Options{HostRoot: u.hostRoot})
	if err != nil {
		return err
	}
	before := u.dropIns()
	err = source.RemoveDropIn(ctx)
	left := u.dropIns()
	for _, file := range before {
		if !slices.Contains(left, file) {
			u.say("Removed %s.", file)
		}
	}
	if err != nil {
		return err
	}
	if len(before) == 0 {
		u.say("systemd-logind has no settings of this agent.")
		return nil
	}
	u.say("systemd-logind goes by its other settings again.")
	return nil
}

// dropIns are those of the drop-in's paths that are there.
func (u *uninstaller) dropIns() []string {
	var there []string
	for _, dir := range []string{"/etc/systemd/logind.conf.d", "/run/systemd/logind.conf.d"} {
		file := filepath.Join("/", u.hostRoot, dir, logind.DropInName)
		if _, err := os.Lstat(file); err == nil {
			there = append(there, file)
		}
	}
	return there
}

// state removes the state of shutdowns, or says that it is kept.
func (u *uninstaller) state() (err error) {
	if u.stateDir == "" {
		return nil
	}
	lock, err := lockState(u.stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		u.say("%s has no state of shutdowns.", u.stateDir)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if !u.removeState {
		u.say("%s is kept, with the state of shutdowns; --remove-state removes it.", u.stateDir)
		return nil
	}
	entries, err := os.ReadDir(u.stateDir)
	if err != nil {
		return fmt.Errorf("failed to list the state: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if name != lockFile && name != api.PlanFile && !strings.HasPrefix(name, stateFiles) && !strings.HasPrefix(name, tornFiles) {
			continue
		}
		if err := os.Remove(filepath.Join(u.stateDir, name)); err != nil {
			return fmt.Errorf("failed to remove the state: %w", err)
		}
	}
	return u.stateFolder()
}

// stateFolder removes the folder of the state where nothing else is in it.
func (u *uninstaller) stateFolder() error {
	err := os.Remove(u.stateDir)
	switch {
	case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.EBUSY):
		u.say("Removed the state of shutdowns from %s. The folder is kept: it is in use, or has other files.", u.stateDir)
		return nil
	case err != nil:
		return fmt.Errorf("failed to remove the state: %w", err)
	}
	u.say("Removed %s, with the state of shutdowns.", u.stateDir)
	return nil
}

func (u *uninstaller) say(format string, args ...any) {
	_, _ = fmt.Fprintf(u.out, format+"\n", args...) // what is done is done, whoever reads of it
}
