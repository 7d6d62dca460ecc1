package unixsocket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
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

// unannounced lists the open connections that have announced nothing, the oldest first.
type unannounced struct {
	mu   sync.Mutex
	list []net.Conn
}

// add adds a connection. If there are too many, it removes the oldest and returns it for the caller to close; otherwise
// it returns nil.
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

// remove removes a connection that has announced a shutdown or ended. A connection that is not in the list is ignored.
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
		_ = replyAndClose([]net.Conn{host}, "error: "+err.Error())
		return
	}
	if oldest := s.unannounced.add(host); oldest != nil {
		_ = oldest.Close() // its serve ends with a read error
	}
	s.start(func() { s.serve(host) })
}

// serve handles the lines of a host until the host sends no more, a line is too long or does not come in time, or the session
// ends. Then it closes the connection, unless the host waits for the reply to an announcement: that connection stays open for
// the reply, even if the host has closed its sending side.
//
// A last line without a line end counts only if the host has closed its sending side. Otherwise it may be a part, such as
// "poweroff 9" of "poweroff 90".
func (s *session) serve(host net.Conn) {
	defer s.unannounced.remove(host)
	// At the end of the session a deadline in the past interrupts a read in progress.
	stop := context.AfterFunc(s.ctx, func() { _ = host.SetReadDeadline(time.Unix(1, 0)) }) // fails only if the connection is closed
	defer stop()
	isWaiting := false // host has announced a shutdown and waits for the reply
	lines := bufio.NewReaderSize(host, maxLine)
	var readErr error // ends the reading
	for s.setLineDeadline(host, isWaiting) {
		line, err := lines.ReadSlice('\n')
		isLastLine := errors.Is(err, io.EOF) && len(line) > 0
		if err != nil && !isLastLine {
			readErr = err
			break
		}
		waitsNow, mayReadMore := s.handleLine(strings.TrimRight(string(line), "\r\n"), host)
		if waitsNow {
			isWaiting = true
			s.unannounced.remove(host)
		}
		if !mayReadMore {
			break
		}
	}
	if !isWaiting {
		s.closeAfter(host, readErr)
	}
}

// closeAfter closes a connection. readErr is the error that has ended its reading; nil: none. If it says that the host's line was
// too long, or did not come in time, the last reply says so.
func (s *session) closeAfter(host net.Conn, readErr error) {
	isInterrupted := s.ctx.Err() != nil // by the end of the session
	switch {
	case errors.Is(readErr, bufio.ErrBufferFull):
		_ = writeLine(host, fmt.Sprintf("error: a line is longer than %d bytes", maxLine)) // fails if the host has closed the connection
	case errors.Is(readErr, os.ErrDeadlineExceeded) && !isInterrupted:
		_ = writeLine(host, fmt.Sprintf("error: no line within %v", s.source.idleTimeout)) // fails if the host has closed the connection
	}
	_ = host.Close() // fails if startServing has closed the connection
}

// setLineDeadline sets the time by which the next line must arrive. A host that is waiting for the reply to its
// announcement may stay silent for any time. mayRead is false if the session or the connection has ended.
func (s *session) setLineDeadline(host net.Conn, isWaiting bool) (mayRead bool) {
	var deadline time.Time // zero: none
	if !isWaiting {
		deadline = time.Now().Add(s.source.idleTimeout)
	}
	err := host.SetReadDeadline(deadline)
	// Check for the end of the session only now: it sets a deadline in the past, which this one may have replaced.
	return err == nil && s.ctx.Err() == nil
}

// handleLine handles one line and replies to it. waits is true if the host waits from now on, and gets its reply
// after the drain. mayReadMore is false if no further line may be read, because the host does not read its replies or
// the session has ended. A cancellation is also the reply to all waiting hosts; their connections are closed.
func (s *session) handleLine(line string, host net.Conn) (waits, mayReadMore bool) {
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
	mayReadMore = true
	isReleased := slices.Contains(released, host) // host gets the reply with the other released ones
	if reply != "" && !isReleased {
		mayReadMore = writeLine(host, reply) == nil
	}
	_ = replyAndClose(released, reply) // fails if a host has closed the connection
	return waits, mayReadMore
}
