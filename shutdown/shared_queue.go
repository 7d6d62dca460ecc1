package shutdown

import (
	"context"
	"sync"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/statuses"
)

// sharedQueue is the queue of statuses that Run shares with each TerminateAll that begins during
// it. It ends with the last of them, so that a TerminateAll that outlives Run can still send
// statuses.
type sharedQueue struct {
	*statuses.Queue

	calls call.Group // of the queue
	end   context.CancelFunc

	mu    sync.Mutex // guards users
	users int
}

// newSharedQueue makes a queue with one user.
func newSharedQueue(ctx context.Context) *sharedQueue {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	s := &sharedQueue{end: end, users: 1}
	s.Queue = statuses.New(ctx, &s.calls)
	return s
}

// join adds a user.
func (s *sharedQueue) join() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

// leave removes a user. The last user ends the queue and gets the group of its calls, some of
// which may still run; nil for the others.
func (s *sharedQueue) leave() *call.Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	s.end()
	return &s.calls
}
