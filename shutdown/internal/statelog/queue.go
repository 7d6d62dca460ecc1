package statelog

import (
	"sync"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// queue runs tasks one after another, in a goroutine that ends when none is waiting.
type queue struct {
	name  string // of the goroutine
	calls *call.Group

	mu        sync.Mutex // guards all below
	waiting   []task
	isOpen    bool  // tasks may run; otherwise they wait for open
	isRunning bool  // the goroutine runs
	isClosed  bool  // new tasks are refused, with refusal
	refusal   error // may be nil
}

// task is a task of a queue. The queue either runs it or refuses it with an error, once.
type task struct {
	run    func()
	refuse func(error)
	batch  *batch // what the task writes, to which appendToLast may add entries; nil: nothing may be added
}

// batch is what one write appends: the entries of one or more calls of Append. A later entry of an entity replaces an
// earlier one.
type batch struct {
	entries     node.Entries
	replacesAll bool // the entries replace the whole log, rather than add to it: they are those of Begin
	written     *call.Future[struct{}]
}

// newFuture returns a future and the function that completes it.
func newFuture() (future *call.Future[struct{}], complete func(error)) {
	future, done := call.NewFuture[struct{}]()
	return future, func(err error) { done(struct{}{}, err) }
}

// addFunc queues f and returns a future of its error.
func (q *queue) addFunc(f func() error) *call.Future[struct{}] {
	future, complete := newFuture()
	q.add(task{run: func() { complete(f()) }, refuse: complete})
	return future
}

// add queues a task. A closed queue refuses it at once.
func (q *queue) add(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isClosed {
		t.refuse(q.refusal)
		return
	}
	q.waiting = append(q.waiting, t)
	q.start()
}

// appendToLast adds entries to the batch of the last waiting task, and returns the batch. It returns nil, and adds
// nothing, if no task is waiting, the last one has no batch, or the queue is closed.
func (q *queue) appendToLast(entries node.Entries) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || q.isClosed {
		return nil
	}
	last := q.waiting[len(q.waiting)-1].batch
	if last == nil {
		return nil
	}
	if entries.Shutdown != nil {
		last.entries.Shutdown = entries.Shutdown
	}
	last.entries.Pods = append(last.entries.Pods, entries.Pods...)
	return last
}

// open lets the waiting tasks run, and all later ones.
func (q *queue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isOpen = true
	q.start()
}

// start starts the goroutine, unless it runs already or tasks may not run. The mutex is held.
func (q *queue) start() {
	if q.isOpen && !q.isRunning && len(q.waiting) > 0 {
		q.isRunning = true
		q.calls.Go(func() string { return q.name }, q.run)
	}
}

// run is the goroutine of the queue. It runs tasks until none is waiting.
func (q *queue) run() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.waiting, q.isRunning = nil, false
			q.mu.Unlock()
			return
		}
		next := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		next.run()
	}
}

// close makes the queue refuse new tasks with refusal, an error that may be nil. Waiting tasks still run. Only the first call
// counts.
func (q *queue) close(refusal error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isClosed {
		q.isClosed, q.refusal = true, refusal
	}
}

// drop refuses the waiting tasks with refusal. A task that runs already is not stopped.
func (q *queue) drop(refusal error) {
	q.mu.Lock()
	dropped := q.waiting
	q.waiting = nil
	q.mu.Unlock()
	for _, t := range dropped {
		t.refuse(refusal)
	}
}
