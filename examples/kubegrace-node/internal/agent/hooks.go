package agent

import (
	"context"
	"net/url"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// hooks is the path of a folder that has an empty file for each container whose preStop hook has run in this
// shutdown, so that a restarted agent does not run the hook again. A hook that was cut off by the end of its
// agent has no file, and runs again. The files are not synced to the disk, because the containers do not
// survive a power failure either. With the path "" nothing is stored.
type hooks string

// hooksIn returns the hooks folder of a state folder.
func hooksIn(stateDir string) hooks {
	if stateDir == "" {
		return ""
	}
	return hooks(filepath.Join(stateDir, statefile.Prefix+"hooks"))
}

// file returns the path of a container's file. The ID is escaped, because it may contain slashes.
func (h hooks) file(containerID string) string {
	return filepath.Join(string(h), url.PathEscape(containerID))
}

// add stores that the hook of a container has run.
func (h hooks) add(containerID string) error {
	if h == "" {
		return nil
	}
	if err := os.MkdirAll(string(h), 0o700); err != nil {
		return err
	}
	return os.WriteFile(h.file(containerID), nil, 0o600)
}

// ran reports whether add has stored, in this shutdown, that the hook of a container has run.
func (h hooks) ran(containerID string) bool {
	if h == "" {
		return false
	}
	_, err := os.Lstat(h.file(containerID))
	return err == nil
}

// forget removes the files of all hooks, so that the next shutdown runs them again.
func (h hooks) forget() error {
	if h == "" {
		return nil
	}
	return os.RemoveAll(string(h))
}

// hookedRuntime is a runtime that also knows which containers' preStop hooks have run, so that the terminator skips
// these.
type hookedRuntime struct {
	Runtime
	hooks hooks
}

// Running lists the running containers of a pod. PreStopDone is set if the container's hook has run.
func (r hookedRuntime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	containers, err := r.Runtime.Running(ctx, pod)
	for i, c := range containers {
		containers[i].PreStopDone = r.hooks.ran(c.ID)
	}
	return containers, err
}
