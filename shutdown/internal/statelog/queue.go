package statelog

import (
	"sync"

	"github.com/kubegrace/kubegrace/internal/call"
)

// queue runs tasks one after the other, in a goroutine that runs while there are any.
type queue struct {
	name  string // of the goroutine
	calls *call.Group

	mu        sync.Mutex // guards all below
	waiting   []task
	isOpen    bool // tasks are run
	isRunning bool
	isClosed  bool  // no further task is accepted
	refusal   error // of a task that is not accepted
}

// task is run, or refused.
type task struct {
	run    func()
	refuse func(error)
	batch  *batch // of a write; nil: no entities may join the task
}

// batch is the entities of one write.
type batch struct {
	entities []any
	written  *call.Future[struct{}]
}

// newFuture returns a future and the function that completes it.
func newFuture() (future *call.Future[struct{}], complete func(error)) {
	future, done := call.NewFuture[struct{}]()
	return future, func(err error) { done(struct{}{}, err) }
}

// do has f run after all before it. The future has its error.
func (q *queue) do(f func() error) *call.Future[struct{}] {
	future, complete := newFuture()
	q.add(task{run: func() { complete(f()) }, refuse: complete})
	return future
}

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

// join adds entities to the last task that waits, if that is a write. nil: there is none.
func (q *queue) join(entities []any) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || q.isClosed {
		return nil
	}
	last := q.waiting[len(q.waiting)-1].batch
	if last != nil {
		last.entities = append(last.entities, entities...)
	}
	return last
}

// open has the tasks run from now on.
func (q *queue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isOpen = true
	q.start()
}

func (q *queue) start() {
	if q.isOpen && !q.isRunning && len(q.waiting) > 0 {
		q.isRunning = true
		q.calls.Go(func() string { return q.name }, q.run)
	}
}

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

// close has no further task accepted, with a refusal.
func (q *queue) close(refusal error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isClosed {
		q.isClosed, q.refusal = true, refusal
	}
}

// drop refuses the tasks that wait.
func (q *queue) drop(refusal error) {
	q.mu.Lock()
	dropped := q.waiting
	q.waiting = nil
	q.mu.Unlock()
	for _, t := range dropped {
		t.refuse(refusal)
	}
}
