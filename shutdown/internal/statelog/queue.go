package statelog

import (
	"sync"

	"github.com/kubegrace/kubegrace/internal/call"
)

// queue runs tasks one after another, in a goroutine that ends when there are none.
type queue struct {
	name  string // of the goroutine
	calls *call.Group

	mu        sync.Mutex // guards all below
	waiting   []task
	isOpen    bool // tasks may run
	isRunning bool
	isClosed  bool  // no new task is accepted
	refusal   error // the error of new tasks
}

// task is either run or refused.
type task struct {
	run    func()
	refuse func(error)
	batch  *batch // of a write that more entities may join; nil: none may
}

type batch struct {
	entities []any
	written  *call.Future[struct{}]
}

// newFuture returns a future and the function that completes it.
func newFuture() (future *call.Future[struct{}], complete func(error)) {
	future, done := call.NewFuture[struct{}]()
	return future, func(err error) { done(struct{}{}, err) }
}

// do queues f. The future has its error.
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

// appendToLast adds entities to the last waiting task and returns its batch; nil if that is no write.
func (q *queue) appendToLast(entities []any) *batch {
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

// open starts running tasks.
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

// close refuses new tasks with an error, which may be nil.
func (q *queue) close(refusal error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isClosed {
		q.isClosed, q.refusal = true, refusal
	}
}

// drop refuses waiting tasks.
func (q *queue) drop(refusal error) {
	q.mu.Lock()
	dropped := q.waiting
	q.waiting = nil
	q.mu.Unlock()
	for _, t := range dropped {
		t.refuse(refusal)
	}
}
