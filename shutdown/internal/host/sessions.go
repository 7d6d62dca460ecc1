package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// reconnectPause is the pause before the next session, as the kubelet's dbusReconnectPeriod.
	// The host is this machine, so it does not grow with failures.
	reconnectPause = time.Second
	// hangingPerPause is how many calls may hang for each reconnectPause: a source whose calls never
	// return would fill the memory.
	hangingPerPause = 10
)

// errNoSession is the error of a Connect that returned neither a session nor an error.
var errNoSession = errors.New("the host has given no session")

// sessions keeps a session with the host. One that fails or is lost is replaced after a second,
// for ever.
type sessions struct {
	source   source.Source
	listener Listener
	caller   *caller
	lock     *lock
	delay    *delay
	trouble  *trouble
	contact  *contact
}

// run keeps a session until ctx ends. Its error is that of closing the last session.
func (s *sessions) run(ctx context.Context) error {
	var logged string // the failure that was logged last; "": none goes on
	for {
		start := time.Now()
		closeErr, err := s.one(ctx)
		if ctx.Err() != nil {
			return closeErr // a lost session is not needed any more, and the Group names calls that hang
		}
		err = errors.Join(err, closeErr)
		s.trouble.lose(err)
		s.contact.tried()
		if time.Since(start) > reconnectPause {
			logged = "" // the session was good for a while, or slow to fail
		}
		pause := reconnectPause * time.Duration(max(1, s.caller.hanging.Load()/hangingPerPause))
		if text := fmt.Sprint(err); text != logged {
			klog.FromContext(ctx).Error(err, "Not connected to the host, will try again", "period", pause)
			logged = text
		}
		if !wait(ctx, pause, nil) {
			return nil
		}
	}
}

// one runs one session from Connect to its loss. It returns the error of Close and the reason of
// the loss.
func (s *sessions) one(parent context.Context) (closeErr, err error) {
	life, end := context.WithCancel(parent) // of the connection, which some sources tie to it
	defer end()
	conn, err := ask(parent, s.caller, "Connect", hangTime, func(ctx context.Context) (source.Session, error) {
		defer context.AfterFunc(ctx, end)()
		return s.source.Connect(life)
	}, drop)
	if err == nil && conn == nil {
		err = errNoSession
	}
	if err != nil {
		return nil, fmt.Errorf("failed to connect to the host: %w", err)
	}
	s.contact.allow(answerTimeout)
	defer s.lock.endSession()
	return (&session{sessions: s, conn: conn, answers: make(chan answer)}).run(parent)
}

// wait waits for d, or until ctx ends or wake is signalled. It reports whether ctx is still
// alive.
func wait(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
