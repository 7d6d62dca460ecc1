package manifest

import (
	"context"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
)

const (
	// quietTime is how long a folder must stay unchanged before a change is reported: an
	// editor writes a file in several steps.
	quietTime = 500 * time.Millisecond
	// rereadInterval is the time after which a change is reported although none was
	// noticed, because not all file systems report changes. It is the kubelet's
	// fileCheckFrequency.
	rereadInterval = 20 * time.Second
)

// Watch returns a channel that receives a value when a folder may have changed, until ctx
// ends. Several changes that nobody has received yet are one value.
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
	timer := time.NewTimer(rereadInterval)
	defer timer.Stop()
	for {
		select {
		case <-watcher.Events:
			timer.Reset(quietTime)
			continue
		case err := <-watcher.Errors:
			logger.Error(err, "Failed to watch the pod manifests, they are looked at from time to time")
			continue
		case <-timer.C:
			timer.Reset(rereadInterval)
		case <-ctx.Done():
			return
		}
		select {
		case changed <- struct{}{}:
		default: // a change is already reported and not yet received
		}
	}
}
