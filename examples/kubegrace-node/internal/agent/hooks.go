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

// hookFolder is the path of a folder that has an empty file for each container whose preStop hook has run in this
// shutdown, so that a restarted agent does not run the hook again. A hook that was cut off by the end of its
// agent has no file, and runs again. The files are not synced to the disk, because the containers do not
// survive a power failure either. With the path "" nothing is stored.
type hookFolder string

// hookFolderIn returns the hookFolder of a state folder; "": there is no state folder.
func hookFolderIn(stateDir string) hookFolder {
	if stateDir == "" {
		return ""
	}
	return hookFolder(filepath.Join(stateDir, statefile.Prefix+"hooks"))
}

// file returns the path of a container's file. The ID is escaped, because it may contain slashes.
func (folder hookFolder) file(containerID string) string {
	return filepath.Join(string(folder), url.PathEscape(containerID))
}

// addRun stores that the hook of a container has run.
func (folder hookFolder) addRun(containerID string) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(string(folder), 0o700); err != nil {
		return err
	}
	return os.WriteFile(folder.file(containerID), nil, 0o600)
}

// hasRun reports whether addRun has stored, in this shutdown, that the hook of a container has run.
func (folder hookFolder) hasRun(containerID string) bool {
	if folder == "" {
		return false
	}
	_, err := os.Lstat(folder.file(containerID))
	return err == nil
}

// remove removes the files of all hooks, so that the next shutdown runs them again.
func (folder hookFolder) remove() error {
	if folder == "" {
		return nil
	}
	return os.RemoveAll(string(folder))
}

// runtimeWithHooks is a runtime that also knows which containers' preStop hooks have run, so that the terminator skips
// these hooks.
type runtimeWithHooks struct {
	Runtime
	hooks hookFolder
}

// Running lists the running containers of a pod. PreStopDone is set if the container's hook has run.
func (r runtimeWithHooks) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	containers, err := r.Runtime.Running(ctx, pod)
	for i, c := range containers {
		containers[i].PreStopDone = r.hooks.hasRun(c.ID)
	}
	return containers, err
}
