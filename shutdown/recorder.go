package shutdown

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

const (
	// stepLag delays a write about the drain that nobody waits for. On a node whose pods end at once
	// a newer write replaces it, so that it need not be made at all.
	stepLag = 10 * time.Millisecond
	// podLag delays a write about a pod on a node with more than somePods, and manyLag on one with more
	// than manyPods, whose file is large: many pods change at once.
	podLag   = 50 * time.Millisecond
	somePods = 110
	manyLag  = time.Second
	manyPods = 1000
	// rewriteLag is the pause after a write that has failed: the disk may be full for a moment only, and
	// nothing else may be to be written for long.
	rewriteLag = 500 * time.Millisecond
)

// recorder stores the newest shutdown and all debts. One file has one shutdown: kills of an earlier
// one are on record as debts, once their pods have ended.
type recorder struct {
	store   *store.Store
	outbox  *outbox.Outbox
	refused func() uint64

	waits atomic.Bool // a write about pods waits for its turn

	mu     sync.Mutex      // guards all below; never held while content is made
	open   bool            // Run goes on and has the state folder, or still may
	ctx    context.Context // of Run
	read   <-chan struct{} // closed when the record was read under the lock of the folder
	loaded <-chan struct{} // closed when the event loop has taken it over
	newest *nodeShutdown
	former *store.Record // of a former agent, while this one has no shutdown; nil: none
	stored uint64        // the number of refused pods that is on record
	onDisk bool          // there is a record with it
	failed *nodeShutdown // the last one with a write that has failed; nil: none
}

// setNewest makes a shutdown the one that is on record from now on.
func (r *recorder) setNewest(s *nodeShutdown) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest, r.former = s, nil
}

// setFormer keeps the record of a former agent until this agent has a shutdown.
func (r *recorder) setFormer(record *store.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newest == nil {
		r.former, r.stored, r.onDisk = record, record.Refused, true
	}
}

// savePods stores that pods were signalled, have ended, or are acknowledged: soon, because an agent
// that dies before does not know of it. Very many pods change at once, so a call while such a write
// waits does nothing.
func (r *recorder) savePods() {
	if !r.waits.CompareAndSwap(false, true) {
		return
	}
	r.mu.Lock()
	newest := r.newest
	r.mu.Unlock()
	pods := 0
	if newest != nil {
		pods = len(newest.account.kills.All())
	}
	switch {
	case pods > manyPods:
		r.save(manyLag)
	case pods > somePods:
		r.save(podLag)
	default:
		r.save(stepLag)
	}
}

// save stores the newest shutdown and the debts after a lag, unless a newer write replaces it.
func (r *recorder) save(lag time.Duration) *call.Future[struct{}] {
	r.mu.Lock()
	open := r.open
	r.mu.Unlock()
	if !open {
		r.waits.Store(false)
		r.outbox.DropUnstored()
		saved, complete := call.NewFuture[struct{}]()
		complete(struct{}{}, nil)
		return saved
	}
	return r.store.Save(lag, r.content)
}

// close makes the last writes, until a time at most, and unlocks the folder. The report has the
// errors of what belongs to a shutdown; the number of refused pods belongs to none.
func (r *recorder) close(ctx context.Context, until time.Time) error {
	r.mu.Lock()
	changed := r.onDisk && r.stored != r.refused()
	r.mu.Unlock()
	if !changed {
		return r.store.Close(until)
	}
	last := r.save(0)
	err := r.store.Close(until)
	_, lastErr := last.Await(context.WithoutCancel(ctx), time.Now())
	return errors.Join(err, lastErr)
}

// setRead sets the channels that are closed when the record was read, and when the event loop has
// taken it over. Call it before setOpen.
func (r *recorder) setRead(read, loaded <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read, r.loaded = read, loaded
}

// setOpen says whether anything can be stored from now on. ctx is that of Run.
func (r *recorder) setOpen(ctx context.Context, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.open = ctx, open
}

// found reports whether there is a record: of a former agent, until the first write of this one.
func (r *recorder) found() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.onDisk
}

// written handles the end of a write. One that has failed is made again. The first one for a shutdown is
// reported; later ones fail for the same reason.
func (r *recorder) written(s *nodeShutdown, refused uint64, err error) {
	r.mu.Lock()
	ctx, again := r.ctx, s == nil || r.failed == s
	if err == nil {
		r.stored, r.onDisk = refused, true
	} else {
		r.failed = s
	}
	r.mu.Unlock()
	if err != nil && !again {
		klog.FromContext(ctx).Error(err, "Shutdown manager met a failure")
		s.account.addErr(err)
	}
	if err != nil {
		r.save(rewriteLag)
	}
}

// saveTimes stores the kubelet's file, beside the record.
func (r *recorder) saveTimes(of Report) {
	r.store.SaveTimes(store.Times{StartTime: of.Started, EndTime: of.Ended})
}

// content returns what is to be on record now. It waits until the record of a former agent was taken
// over, which no write may replace before; else a debt that was paid meanwhile would be owed again.
func (r *recorder) content() (content store.Content) {
	r.mu.Lock()
	ctx, read, loaded := r.ctx, r.read, r.loaded
	r.mu.Unlock()
	select {
	case <-loaded:
	case <-ctx.Done(): // nobody takes it over any more
		<-read
	}
	r.waits.Store(false)
	refused := r.refused()
	r.mu.Lock()
	newest, former := r.newest, r.former
	r.mu.Unlock()
	if newest != nil {
		content = newest.content(r.store)
	}
	debts, stored := r.outbox.Debts() // after the pods: one that ends meanwhile is in one of the two
	if newest == nil && former != nil {
		content = store.Content{Record: *former, Pods: formerPods(former, r.store.BootID(), debts)}
	}
	content.Record.Refused = refused
	content.Debts = storedDebts(debts)
	content.Written = func(err error) {
		stored() // also after a failure: a full disk must not keep a pod from its start
		r.written(newest, refused, err)
	}
	return content
}
