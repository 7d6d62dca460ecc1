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

// hooks is a folder with an empty file for each container whose preStop hook has run in this shutdown, so that the
// agent that follows does not run it again. One that was cut off because its agent has died is not among them. The
// containers do not outlive a power failure, so nothing is synced. "" keeps nothing.
type hooks string

// hooksIn returns the hooks that are kept in a state folder.
func hooksIn(stateDir string) hooks {
	if stateDir == "" {
		return ""
	}
	return hooks(filepath.Join(stateDir, statefile.Prefix+"hooks"))
}

func (h hooks) file(containerID string) string {
	return filepath.Join(string(h), url.PathEscape(containerID))
}

// add records that the hook of a container has run.
func (h hooks) add(containerID string) error {
	if h == "" {
		return nil
	}
	if err := os.MkdirAll(string(h), 0o700); err != nil {
		return err
	}
	return os.WriteFile(h.file(containerID), nil, 0o600)
}

// ran reports whether the hook of a container is on record.
func (h hooks) ran(containerID string) bool {
	if h == "" {
		return false
	}
	_, err := os.Lstat(h.file(containerID))
	return err == nil
}

// forget forgets all: the shutdown is over.
func (h hooks) forget() error {
	if h == "" {
		return nil
	}
	return os.RemoveAll(string(h))
}

// hookedRuntime is a runtime that lists containers with what is known of their hooks.
type hookedRuntime struct {
	Runtime
	hooks hooks
}

// Running lists the containers of a pod that run.
func (r hookedRuntime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	containers, err := r.Runtime.Running(ctx, pod)
	for i, c := range containers {
		containers[i].PreStopDone = r.hooks.ran(c.ID)
	}
	return containers, err
}
