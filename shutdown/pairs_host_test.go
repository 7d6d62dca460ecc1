//go:build linux && go1.25

package shutdown_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

// Adopt hands over what systemd's FD store has.
func (a *pairsAgent) Adopt() (left io.Closer) {
	a.locked(func() {
		if kept := a.kept; kept != nil && !a.isDead() {
			a.kept, a.adopted = nil, true
			left = a.hold(kept)
		}
	})
	return left
}

// Connect connects to the host.
func (a *pairsAgent) Connect(ctx context.Context) (shutdown.Session, error) {
	a.enter("connect")
	if err := a.leave(nil); err != nil {
		return nil, err
	}
	var s shutdown.Session
	err := a.spoil(ctx, "connect", "", func() (err error) {
		if s, err = a.host.Connect(ctx); err == nil {
			a.locked(func() { a.sessions, a.heard = append(a.sessions, s), false })
		}
		return err
	})
	return &pairsSession{s, a}, err
}

// pairsSession is a session of an agent.
type pairsSession struct {
	shutdown.Session

	a *pairsAgent
}

// Events passes on the host's events, of which the table of states hears at the same moment.
func (s *pairsSession) Events() <-chan shutdown.Event {
	events := make(chan shutdown.Event)
	go func() {
		defer close(events)
		for {
			var e shutdown.Event
			var up bool
			select {
			case e, up = <-s.Session.Events():
			case <-s.a.over: // nobody closes the session of an agent that was killed in Connect
				return
			}
			if !up {
				return
			}
			began := time.Now()
			if fault := s.a.meets("event", ""); fault != nil && fault.way == deaf { // it never comes
				s.a.locked(func() { fault.over = time.Now() })
				continue
			} else if fault != nil && s.a.goWrong(s.a.Context(), fault) != nil {
				return
			}
			if time.Since(began) > 0 {
				<-time.After(time.Nanosecond) // no two shutdowns begin at the same time
			}
			heard := false
			s.a.locked(func() { heard = s.hears(e) })
			if !heard {
				return
			}
			select {
			case events <- e:
			case <-s.a.over:
				return
			}
		}
	}()
	return events
}

// hears is an event that reaches the agent, unless the session is lost. The mutex is held.
func (s *pairsSession) hears(e shutdown.Event) bool {
	a := s.a
	if a.isDead() || !slices.Contains(a.sessions, s.Session) {
		return false
	}
	a.heard, a.contacted = true, cmp.Or(a.contacted, time.Now())
	if e.Cancelled {
		a.cancelled("host")
	} else {
		a.announced("host", e.Deadline, false)
	}
	return true
}

func (s *pairsSession) Pending(ctx context.Context) (*shutdown.Event, error) {
	s.a.enter("pending")
	var pending *shutdown.Event
	err := s.a.spoil(ctx, "pending", "", func() (err error) {
		pending, err = s.Session.Pending(ctx)
		return err
	})
	if err := s.a.leave(err); err != nil {
		return nil, err
	}
	s.a.locked(func() {
		switch {
		case s.a.heard: // what the session has sent is newer
		case pending != nil:
			s.a.announced("host", pending.Deadline, true)
		default:
			s.a.cancelled("host")
		}
		s.a.connected = time.Now()
		s.a.contacted = cmp.Or(s.a.contacted, s.a.connected)
	})
	return pending, nil
}

func (s *pairsSession) RequestDelay(ctx context.Context, wish time.Duration) (granted time.Duration, err error) {
	s.a.enter("delay")
	err = s.a.spoil(ctx, "delay", "", func() (err error) {
		granted, err = s.Session.RequestDelay(ctx, wish)
		return err
	})
	return granted, s.a.leave(err)
}

func (s *pairsSession) Inhibit(ctx context.Context) (io.Closer, error) {
	s.a.enter("inhibit")
	var l io.Closer
	err := s.a.spoil(ctx, "inhibit", "", func() (err error) {
		l, err = s.Session.Inhibit(ctx)
		return err
	})
	if err != nil {
		return nil, s.a.leave(err)
	}
	var held io.Closer
	s.a.locked(func() {
		if held = s.a.hold(l); s.a.isDead() {
			_ = l.Close()
		}
	})
	return held, s.a.leave(nil)
}

func (s *pairsSession) Close() error {
	if err := s.a.leave(nil); err != nil {
		return err
	}
	s.a.locked(func() {
		s.a.sessions = slices.DeleteFunc(s.a.sessions, func(o shutdown.Session) bool { return o == s.Session })
		if len(s.a.sessions) == 0 {
			s.a.connected, s.a.lost = time.Time{}, time.Now()
		}
	})
	err := s.Session.Close()
	return s.a.spoil(s.a.Context(), "close", "", func() error { return err })
}

// hears reports whether a session is up. The mutex is held.
func (a *pairsAgent) hears() bool { return !a.connected.IsZero() || len(a.sessions) > 0 }

// hold has an agent hold a lock. The mutex is held.
func (a *pairsAgent) hold(l io.Closer) io.Closer {
	a.locks = append(a.locks, l)
	return &pairsLock{a, l, time.Now()}
}

// pairsLock is a lock that an agent holds.
type pairsLock struct {
	a     *pairsAgent
	l     io.Closer
	taken time.Time
}

func (l *pairsLock) Close() error {
	l.a.enter("release")
	if err := l.a.leave(nil); err != nil {
		return err
	}
	killed := false
	l.a.locked(func() {
		if killed = l.a.isDead(); killed { // meanwhile: it was closed, or systemd has it
			return
		}
		l.a.locks = slices.DeleteFunc(l.a.locks, func(o io.Closer) bool { return o == l.l })
		if time.Since(l.taken) > 0 { // else it came too late to be held
			l.a.judgeRelease(l.a)
		}
	})
	if killed {
		return l.a.leave(nil)
	}
	s := l.a.meets("unlock", "")
	if s == nil {
		return l.l.Close()
	}
	if hangs := !s.after && (s.way == deaf || s.way == hears); hangs { // close(2) frees the descriptor even if it fails
		l.a.locked(func() { l.a.stuckLocks++ })
		defer func() {
			l.a.locked(func() { l.a.stuckLocks-- })
			_ = l.l.Close()
		}()
	} else {
		_ = l.l.Close()
	}
	return l.a.goWrong(l.a.Context(), s)
}

// pairsSync is how long after a write its name is synced at the latest, as the store does it.
const pairsSync = 60 * time.Millisecond

// write writes a state file. What an agent is killed in is lost.
func (a *pairsAgent) write(path string, encode func(io.Writer) error) error {
	began := time.Now()
	var data bytes.Buffer
	if err := encode(&data); err != nil {
		return err
	}
	kind := "write"
	if filepath.Base(path) == store.TimesFile {
		kind = "times"
	}
	a.enter("write")
	return a.spoil(a.Context(), kind, "", func() error {
		<-time.After(a.diskTakes)
		a.enter("written")
		if err := a.leave(os.WriteFile(path+".new", data.Bytes(), 0o600)); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil { // the judge may read it meanwhile
			return err
		}
		a.locked(func() {
			name := filepath.Base(path)
			if file := a.unsynced[name]; !time.Now().Before(file.until) {
				a.unsynced[name] = pairsFile{a.disk[name], time.Now().Add(pairsSync)}
			}
			if a.disk[name] = data.Bytes(); kind == "write" {
				a.wrote = began
			}
		})
		a.enter("renamed")
		return nil
	})
}
