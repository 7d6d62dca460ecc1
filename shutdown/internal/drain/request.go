package drain

import (
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Request says what a drain is for. It does not change.
type Request struct {
	// Number is higher than that of every earlier drain of the manager.
	Number uint64
	// Account is that of the shutdown.
	Account *kills.Account
	// Table has the schedule, the times of the event, and what earlier drains have done. Its
	// schedule may be empty: then the pods' grace periods make one. Late and Needs are set here.
	Table timetable.Request
	// Resumed is the timetable of a former agent; nil: a new one is made.
	Resumed *timetable.Table
	// Publish begins the publication of the node state, and returns that of an earlier drain of the
	// shutdown if there is one; nil: there is nothing to wait for. It may ask the embedder, bounded.
	Publish func() *outbox.Publication
}

// Listener hears what a drain does. The methods return at once.
type Listener interface {
	// Planned is called when the timetable stands and the account has everyone whom the drain means
	// to kill. The future completes when both are on record.
	Planned(timetable.Table) *call.Future[struct{}]
	// Passed is called when a step before the first bucket is over.
	Passed(Step)
	// Begins is called before the kills of a bucket, Ends when the bucket is done.
	Begins(bucket int)
	Ends(bucket int)
	// Signalled and Ended are called once for each pod. GaveUp is called when the drain no longer
	// waits for a pod that is not known to have ended; err is that of its last kill.
	Signalled(*kills.Kill)
	Ended(*kills.Kill)
	GaveUp(k *kills.Kill, err error)
	// Fail has a failure for the report; it logs it. It ignores nil.
	Fail(error)
}

// Step is a step of a drain before its first bucket.
type Step int

// The steps that a later drain of the same shutdown does not repeat.
const (
	Prepared Step = iota
	Held
	Published
)

// Options are the same for all drains of a manager.
type Options struct {
	Embedder

	Plan   plan.Options
	Outbox *outbox.Outbox
	Calls  *call.Group
}
