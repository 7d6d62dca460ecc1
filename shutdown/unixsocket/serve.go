package unixsocket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// maxGuests is how many connections may be open that have announced nothing. The
	// oldest of them makes room for a new one.
	maxGuests = 64
	// maxLine is the longest line, with its end, in bytes.
	maxLine = 256
	// idleTimeout is how long a connection may take for a line until it has announced
	// something.
	idleTimeout = 10 * time.Second
)

// guests are the connections that have announced nothing yet, the oldest first.
type guests struct {
	mu   sync.Mutex
	list []net.Conn
}

// add takes a connection in, and gives the one that makes room for it; nil: there is
// room.
func (g *guests) add(host net.Conn) (oldest net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, host)
	if len(g.list) <= maxGuests {
		return nil
	}
	oldest = g.list[0]
	g.list = slices.Delete(g.list, 0, 1)
	return oldest
}

func (g *guests) remove(host net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = slices.DeleteFunc(g.list, func(guest net.Conn) bool { return guest == host })
}

// admit begins to read a host, if it is one that may speak.
func (s *session) admit(host *net.UnixConn) {
	if err := checkPeer(host); err != nil {
		s.logger.Error(err, "Refused a host")
		_ = reply([]net.Conn{host}, "error: "+err.Error()) // it is not waited for
		return
	}
	if oldest := s.guests.add(host); oldest != nil {
		_ = oldest.Close() // whoever reads it is told
	}
	s.work.Go(func() { s.serve(host) })
}

// serve reads what a host says, until it says no more or the session ends. A host
// that waits is kept: closing its side of the connection is no cancellation.
func (s *session) serve(host net.Conn) {
	defer s.guests.remove(host)
	stop := context.AfterFunc(s.life, func() { _ = host.SetReadDeadline(time.Unix(1, 0)) }) // it can fail only on a closed one
	defer stop()
	waits, reads := false, true
	lines := bufio.NewScanner(host)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	for reads && s.mayRead(host, waits) && lines.Scan() {
		var from bool
		from, reads = s.hear(lines.Text(), host)
		if from {
			waits = true
			s.guests.remove(host)
		}
	}
	if waits {
		return
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		_ = answer(host, fmt.Sprintf("error: a line is longer than %d bytes", maxLine)) // nothing was promised to it
	case errors.Is(err, os.ErrDeadlineExceeded) && s.life.Err() == nil:
		_ = answer(host, fmt.Sprintf("error: no line within %v", s.source.idle)) // as above
	}
	_ = host.Close() // as above
}

// mayRead bounds the wait for the next line, and tells whether the session goes on.
func (s *session) mayRead(host net.Conn, waits bool) bool {
	var end time.Time // none: a host that waits need not say any more
	if !waits {
		end = time.Now().Add(s.source.idle)
	}
	// The end of the session sets a deadline too; it is asked for afterwards, so that
	// either that deadline counts or the answer is no.
	return host.SetReadDeadline(end) == nil && s.life.Err() == nil
}

// hear handles one line. It tells whether the host waits for the lock from now on, and
// whether it reads its answers: nothing more is heard from one that does not.
func (s *session) hear(line string, host net.Conn) (waits, reads bool) {
	event, err := parse(line, time.Now())
	if err != nil {
		return false, answer(host, "error: "+err.Error()) == nil
	}
	said := statement{event: event, host: host, outcome: make(chan outcome, 1)}
	select {
	case s.said <- said:
	case <-s.life.Done():
		return false, answer(host, notHeard) == nil
	}
	follows := <-said.outcome
	reads = true
	if follows.answer != "" && !slices.Contains(follows.freed, host) {
		reads = answer(host, follows.answer) == nil
	}
	_ = reply(follows.freed, follows.answer) // a host that is gone misses nothing
	return follows.waits, reads
}
