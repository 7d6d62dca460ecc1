// Package nonblocking writes to a terminal, a pipe or a file without blocking its caller: a reader that is
// slow or has stopped reading must not delay a shutdown. A text is lost if it cannot be written, or if 4,096
// others already wait to be written. Errors are not reported.
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
	mu      sync.RWMutex // held by Write for reading and by Close for writing, so that Write does not send to a closed channel
	closed  bool
	texts   chan []byte   // the texts that wait to be written
	flushed chan struct{} // closed when, after Close, all texts have been written
}

// New makes a writer that writes to out, in a goroutine that ends after Close.
func New(out io.Writer) *Writer {
	w := &Writer{texts: make(chan []byte, maxWaiting), flushed: make(chan struct{})}
	go func() {
		defer close(w.flushed)
		for text := range w.texts {
			_, _ = out.Write(text) // there is nowhere else to report the error
		}
	}()
	return w
}

// Write copies text, which is written later. It does not block. It always returns len(text) and nil.
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

// Close waits until all texts are written, for at most two seconds. Later calls of Write have no effect. Call
// Close once.
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
