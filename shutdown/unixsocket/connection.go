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
	// maxUnannounced is how many connections that have announced nothing may be open. When there are more, the
	// oldest is closed, so that idle connections cannot keep out the host.
	maxUnannounced = 64
	// maxLine is the maximum length of a line in bytes, with its line end.
	maxLine = 256
	// idleTimeout is how long a connection that has announced nothing may take for a line.
	idleTimeout = 10 * time.Second
)

// unannounced has the open connections that have announced nothing, the oldest first.
type unannounced struct {
	mu   sync.Mutex
	list []net.Conn
}

// add adds a connection. If there are too many, it removes the oldest and returns it for the caller to close; otherwise nil.
func (u *unannounced) add(host net.Conn) (oldest net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, host)
	if len(u.list) <= maxUnannounced {
		return nil
	}
	oldest = u.list[0]
	u.list = slices.Delete(u.list, 0, 1)
	return oldest
}

// remove removes a connection that has announced a shutdown or ended. One that is not in the list is ignored.
func (u *unannounced) remove(host net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = slices.DeleteFunc(u.list, func(conn net.Conn) bool { return conn == host })
}

// startServing serves a connection in a goroutine, if its user may shut the node down. If more than
// maxUnannounced connections have announced nothing, it closes the oldest of them.
func (s *session) startServing(host *net.UnixConn) {
	if err := checkPeer(host); err != nil {
		s.logger.Error(err, "Refused a connection")
		_ = replyAndClose([]net.Conn{host}, "error: "+err.Error()) // the user may not read it
		return
	}
	if oldest := s.unannounced.add(host); oldest != nil {
		_ = oldest.Close() // its serve ends with a read error
	}
	s.start(func() { s.serve(host) })
}

// serve handles the lines of a host until the host sends no more or the session ends. Then it closes the connection, unless
// the host waits for the reply to an announcement: that connection stays open for the reply. A waiting host may close
// its sending side; that does not cancel the shutdown. A line that is too long, or does not come in time, also ends the
// connection, with an error as the last reply.
func (s *session) serve(host net.Conn) {
	defer s.unannounced.remove(host)
	// The end of the session interrupts a read with a deadline in the past.
	stop := context.AfterFunc(s.ctx, func() { _ = host.SetReadDeadline(time.Unix(1, 0)) }) // fails only if the connection is closed
	defer stop()
	waits := false // host has announced a shutdown and waits for the reply
	readsMore := true
	lines := bufio.NewScanner(host)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	for readsMore && s.setLineDeadline(host, waits) && lines.Scan() {
		var waitsNow bool
		waitsNow, readsMore = s.handleLine(lines.Text(), host)
		if waitsNow {
			waits = true
			s.unannounced.remove(host)
		}
	}
	if waits {
		return
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		_ = writeLine(host, fmt.Sprintf("error: a line is longer than %d bytes", maxLine)) // fails if the host has closed the connection
	case errors.Is(err, os.ErrDeadlineExceeded) && s.ctx.Err() == nil: // not interrupted by the end of the session
		_ = writeLine(host, fmt.Sprintf("error: no line within %v", s.source.idleTimeout)) // fails if the host has closed the connection
	}
	_ = host.Close() // the host does not wait; fails if startServing has closed the connection
}

// setLineDeadline sets the time by which the next line must arrive. If waits, the host waits for the reply to an
// announcement and may stay silent for any time. ok is false if the session or the connection has ended, so that no
// line must be read.
func (s *session) setLineDeadline(host net.Conn, waits bool) (ok bool) {
	var end time.Time // zero: no deadline
	if !waits {
		end = time.Now().Add(s.source.idleTimeout)
	}
	// The end of the session sets a deadline in the past, which this one may replace. So check for the
	// end afterwards.
	return host.SetReadDeadline(end) == nil && s.ctx.Err() == nil
}

// handleLine handles one line and replies to it. waits is true if the host waits from now on, and gets its reply
// after the drain. readsMore is false if no further line is to be read, because the host does not read its replies or
// the session has ended. A cancellation is also the reply to all hosts that have waited; their connections are closed.
func (s *session) handleLine(line string, host net.Conn) (waits, readsMore bool) {
	event, err := parse(line, time.Now())
	if err != nil {
		return false, writeLine(host, "error: "+err.Error()) == nil
	}
	select {
	case s.eventLock <- struct{}{}:
	case <-s.ctx.Done():
		_ = writeLine(host, sessionEndingReply) // fails if the host has closed the connection
		return false, false
	}
	waits, reply, released := s.handleEvent(event, host)
	<-s.eventLock
	readsMore = true
	isReleased := slices.Contains(released, host) // then it gets the reply below
	if reply != "" && !isReleased {
		readsMore = writeLine(host, reply) == nil
	}
	_ = replyAndClose(released, reply) // fails if a host has closed the connection
	return waits, readsMore
}
