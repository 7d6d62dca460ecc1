package shutdown

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// runLoop starts the keeper and the announcer, reads the inbox until ctx ends,
// and waits for all that was started.
func (m *Manager) runLoop(ctx context.Context) error {
	var work sync.WaitGroup
	l := &loop{m: m, ctx: ctx, work: &work, announcer: m.newAnnouncer()}
	l.openLedger()
	work.Go(func() { l.announcer.run(ctx) })
	var keeping error
	if m.watches() {
		l.keeper = m.newKeeper()
		m.logWish(ctx)
	}
	l.recall()
	if l.keeper != nil {
		work.Go(func() { keeping = l.keeper.run(ctx) })
	}
	l.serve()
	m.phase.Store(phaseOver)
	close(m.stopped)
	err := m.lock.shut() // at once: the host does not wait for a killer that hangs
	work.Wait()
	return errors.Join(err, keeping, m.ledger.close())
}

// openLedger is where a host that cannot tell one boot from another is found out.
func (l *loop) openLedger() {
	keepsTimes := l.m.byPriority && features.Enabled(l.m.opts.Gates, GracefulNodeShutdown)
	ledger, err := newLedger(l.m.opts.StateDir, keepsTimes, l.m.refused.Load, l.m.boot)
	l.m.ledger = ledger
	if err != nil {
		l.trouble = append(l.trouble, err)
	}
}

func (m *Manager) newAnnouncer() *announcer {
	return &announcer{reporter: m.opts.Reporter, events: m.opts.Events, node: m.opts.Node, wake: make(chan struct{}, 1)}
}

func (m *Manager) newKeeper() *keeper {
	return &keeper{
		source: m.opts.Source,
		wish:   m.wish(),
		short:  m.cuts,
		lock:   &m.lock,
		post:   m.post,
		settle: m.settle,
		wake:   make(chan struct{}, 1),
	}
}

// wish is what the host is asked to wait for: all that a drain needs, or the limit
// that an operator has set.
func (m *Manager) wish() time.Duration {
	total := plan.NewBudget(m.schedule, m.opts.Plan).Total()
	if m.opts.Plan.Limit != 0 {
		return min(total, max(m.opts.Plan.Limit, 0))
	}
	return total
}

// logWish says once what the host is asked to wait for, part by part.
func (m *Manager) logWish(ctx context.Context) {
	b, logger := plan.NewBudget(m.schedule, m.opts.Plan), klog.FromContext(ctx)
	if m.cuts(m.wish()) {
		logger.Info("The limit of the shutdown options is too short for the schedule, some pods get less time", "limit", m.opts.Plan.Limit, "schedule", b.Schedule.Total())
	}
	logger.V(1).Info("Asking the host to delay its shutdown", "delay", m.wish(),
		"pods", b.Schedule.Total(), "hold", b.Hold, "publish", b.Publish, "besideBuckets", b.Beside()-b.Publish,
		"containersFloor", b.Floor, "releaseMargin", b.Margin)
}

// cuts tells whether a host that waits for limit leaves a bucket less than its own.
func (m *Manager) cuts(limit time.Duration) bool {
	return plan.NewBudget(m.schedule, m.opts.Plan).Fit(limit).Schedule.Total() < m.schedule.Total()
}

// post hands a message to the loop; false: it reads no more.
func (m *Manager) post(msg message) bool {
	select {
	case m.inbox <- msg:
		return true
	case <-m.stopped:
		return false
	}
}

func (l *loop) serve() {
	for {
		select {
		case msg := <-l.m.inbox:
			msg(l)
		case <-l.ctx.Done():
			return
		}
	}
}
