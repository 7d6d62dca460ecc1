// Package nonblocking writes to a terminal, a pipe or a file without blocking its caller: a reader that is slow or
// has stopped reading must not delay a shutdown. Errors are not reported. What cannot be written is lost,
// and so is what comes while 4,096 texts wait.
package nonblocking

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	maxWaiting = 4096
	// closeTimeout bounds the wait of Close for a slow reader.
	closeTimeout = 2 * time.Second
)

// Writer is a buffered [io.Writer] that does not block, for concurrent use. Make one with [New].
type Writer struct {
	mu      sync.RWMutex // held by Close, and read-held by Write, which does not wait
	closed  bool
	texts   chan []byte
	flushed chan struct{} // closed when all was written after Close
}

// New makes a writer that writes to out.
func New(out io.Writer) *Writer {
	w := &Writer{texts: make(chan []byte, maxWaiting), flushed: make(chan struct{})}
	go func() {
		defer close(w.flushed)
		for text := range w.texts {
			_, _ = out.Write(text) // there is no other place to report the error to
		}
	}()
	return w
}

// Write takes a text. It does not block, and its error is always nil.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if !w.closed {
		select {
		case w.texts <- bytes.Clone(text):
		default:
		}
	}
	return len(text), nil
}

// Close waits until all is written, for at most two seconds. What is written after that is lost.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	close(w.texts)
	w.mu.Unlock()
	select {
	case <-w.flushed:
	case <-time.After(closeTimeout):
	}
}
