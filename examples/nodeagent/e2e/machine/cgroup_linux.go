package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	cgroupMount  = "/sys/fs/cgroup"
	systemdMount = cgroupMount + "/systemd" // where systemd has a hierarchy of version 1
	unifiedMount = cgroupMount + "/unified" // version 2 beside version 1
)

// makeCgroups makes the cgroups of a machine, below those of the test. With
// --keep-unit, nspawn gives a machine the one that it is in itself: two machines
// would share it, and each systemd would take the other's processes for its own.
func makeCgroups(name string) ([]string, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("failed to read the cgroups of the test: %w", err)
	}
	var made []string
	for line := range strings.Lines(string(own)) {
		mount, path := hierarchy(strings.TrimSpace(line))
		if mount == "" {
			continue
		}
		dir := filepath.Join(mount, path, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return made, fmt.Errorf("failed to make a cgroup: %w", err)
		}
		made = append(made, dir)
	}
	return made, nil
}

// hierarchy takes a line ID:CONTROLLERS:PATH and gives the mount of a hierarchy in
// which systemd keeps its units, "" for another one, and the path in it.
func hierarchy(line string) (mount, path string) {
	fields := strings.SplitN(line, ":", 3)
	if len(fields) != 3 {
		return "", ""
	}
	switch {
	case fields[1] == "name=systemd":
		return systemdMount, fields[2]
	case fields[0] != "0":
		return "", ""
	case isDir(unifiedMount):
		return unifiedMount, fields[2]
	default:
		return cgroupMount, fields[2]
	}
}

// isDir is false also where nobody may look.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// removeCgroups removes cgroups with all below them, which no process may be in. Only
// folders can be removed in this file system; their files go with them.
func removeCgroups(groups []string) error {
	var failed []error
	for _, group := range groups {
		var dirs []string
		failed = append(failed, filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return ignoreGone(err)
		}))
		for _, dir := range slices.Backward(dirs) {
			failed = append(failed, ignoreGone(os.Remove(dir)))
		}
	}
	return errors.Join(failed...)
}

// ignoreGone is for what the kernel may have removed meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
