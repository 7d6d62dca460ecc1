package outbox

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Options are the functions of an [Outbox]. They are called without a lock held.
type Options struct {
	// FlushPod, MarkNotReady and RestoreReadiness make one attempt to send a final status, a mark,
	// or the restoration of a mark. The pod is a copy. Nil means that the API server has accepted
	// it, or that there is nothing to do for this pod any more. A function that is nil means that
	// there are no debts of its kind.
	FlushPod, MarkNotReady, RestoreReadiness func(ctx context.Context, pod *v1.Pod) error
	// Publish makes one attempt to publish a node state; there is one call at a time. Nil means
	// that every state counts as published.
	Publish func(ctx context.Context, state any) error
	// PublishAttempt is how long the wait for a publication takes. One call of Publish ends 20 ms
	// earlier, so that the one who waits sees its error. Up to 40 ms count as 5 s.
	PublishAttempt time.Duration
	// Changed is called when Debts has something else to return than before. It must not block.
	// Nil means that nothing is stored: then nobody waits for acknowledgements to be on record.
	Changed func()
}
