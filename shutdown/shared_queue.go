package shutdown

import (
	"context"
	"sync"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/statuses"
)

// sharedQueue is the queue of Run and of each TerminateAll that has begun within it. It
// ends with the last of them: a TerminateAll that outlives Run keeps its way to the API
// server.
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

// leave takes a user away and ends the queue with the last one, who gets the calls that may
// still run; nil: there are other users.
func (s *sharedQueue) leave() *call.Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	s.end()
	return &s.calls
}
