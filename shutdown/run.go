package shutdown

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/internal/features"
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
		lock:   &m.lock,
		post:   m.post,
		settle: m.settle,
		wake:   make(chan struct{}, 1),
	}
}

// wish is what the host is asked to wait for.
func (m *Manager) wish() time.Duration {
	wish := saturatingAdd(m.schedule.Total(), containerFloor)
	if m.opts.Hold != nil {
		wish = saturatingAdd(wish, m.opts.HoldTimeout)
	}
	return wish
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
