package manifest

import (
	"context"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
)

const (
	// settleTime is for how long nothing changes before a change is told of: an editor
	// writes a file in several steps.
	settleTime = 500 * time.Millisecond
	// checkInterval is how often a change is told of whether there was one or not, as not
	// every file system tells of changes: the kubelet's fileCheckFrequency.
	checkInterval = 20 * time.Second
)

// Watch tells when something may have changed in a folder, until ctx ends. What comes
// while nobody listens is told once.
func Watch(ctx context.Context, dir string) (<-chan struct{}, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("failed to watch the pod manifests: %w", err)
	}
	if err := watcher.Add(dir); err != nil {
		return nil, fmt.Errorf("failed to watch the pod manifests in %s: %w", dir, err)
	}
	changed := make(chan struct{}, 1)
	go watch(ctx, watcher, changed)
	return changed, nil
}

func watch(ctx context.Context, watcher *fsnotify.Watcher, changed chan<- struct{}) {
	logger := klog.FromContext(ctx)
	defer func() {
		if err := watcher.Close(); err != nil {
			logger.Error(err, "Failed to end the watching of pod manifests")
		}
	}()
	next := time.NewTimer(checkInterval)
	defer next.Stop()
	for {
		select {
		case <-watcher.Events:
			next.Reset(settleTime)
			continue
		case err := <-watcher.Errors:
			logger.Error(err, "Failed to watch the pod manifests, they are looked at from time to time")
			continue
		case <-next.C:
			next.Reset(checkInterval)
		case <-ctx.Done():
			return
		}
		select {
		case changed <- struct{}{}:
		default: // it is told already
		}
	}
}
