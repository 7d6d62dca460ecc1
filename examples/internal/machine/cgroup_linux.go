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
	systemdMount = cgroupMount + "/systemd" // systemd's hierarchy in cgroup v1
	unifiedMount = cgroupMount + "/unified" // cgroup v2 beside v1
)

// makeCgroups creates the cgroups of a machine below those of the test process, and returns their folders.
// nspawn with --keep-unit creates none. Without cgroups of their own two machines would share those of the
// test, and the systemd of each would manage the other's processes.
func makeCgroups(name string) ([]string, error) {
	testCgroups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("failed to read the cgroups of the test: %w", err)
	}
	var created []string
	for line := range strings.Lines(string(testCgroups)) {
		mount, path := parseHierarchy(strings.TrimSpace(line))
		if mount == "" {
			continue // systemd does not use this hierarchy
		}
		dir := filepath.Join(mount, path, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return created, fmt.Errorf("failed to make a cgroup: %w", err)
		}
		created = append(created, dir)
	}
	return created, nil
}

// parseHierarchy parses a line ID:CONTROLLERS:PATH of /proc/self/cgroup, which has the cgroup of this process in one
// hierarchy. It returns the hierarchy's mount point and the path of the cgroup in it, or "" if systemd does not use the
// hierarchy.
func parseHierarchy(line string) (mount, path string) {
	fields := strings.SplitN(line, ":", 3)
	if len(fields) != 3 {
		return "", ""
	}
	id, controllers, path := fields[0], fields[1], fields[2]
	switch {
	case controllers == "name=systemd": // systemd's hierarchy of cgroup v1
		return systemdMount, path
	case id != "0": // another hierarchy of cgroup v1
		return "", ""
	case isDir(unifiedMount): // cgroup v2, beside v1
		return unifiedMount, path
	default: // only cgroup v2
		return cgroupMount, path
	}
}

// isDir reports whether path exists and is a folder.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// removeCgroups removes cgroups and all cgroups below them. It fails for those that still have processes. It
// removes only folders, from the innermost on: the files in cgroupfs vanish with their folder.
func removeCgroups(groups []string) error {
	var errs []error
	for _, group := range groups {
		var dirs []string
		errs = append(errs, filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return ignoreNotExist(err)
		}))
		for _, dir := range slices.Backward(dirs) {
			errs = append(errs, ignoreNotExist(os.Remove(dir)))
		}
	}
	return errors.Join(errs...)
}

// ignoreNotExist returns nil for the error of a cgroup that no longer exists: systemd may remove some at the
// same time.
func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
