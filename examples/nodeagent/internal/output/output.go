// Package output writes to a terminal, a pipe or a file without blocking its caller: a reader that is slow or
// has stopped reading must not delay a shutdown. Errors are not reported. What cannot be written is lost,
// and so is what comes while 4,096 texts wait.
package output

import (
	"bytes"
	"io"
	"time"
)

const (
	maxWaiting = 4096
	// closeTimeout bounds the wait of Close for a slow reader.
	closeTimeout = 2 * time.Second
)

// Writer is a buffered [io.Writer] that does not block, for concurrent use. Make one with [New].
type Writer struct {
	texts   chan []byte
	closed  chan struct{} // closed by Close
	flushed chan struct{} // closed when all was written after Close
}

// New makes a writer that writes to out.
func New(out io.Writer) *Writer {
	w := &Writer{texts: make(chan []byte, maxWaiting), closed: make(chan struct{}), flushed: make(chan struct{})}
	go w.write(out)
	return w
}

// write writes until the Writer is closed and nothing waits.
func (w *Writer) write(out io.Writer) {
	defer close(w.flushed)
	for {
		select {
		case text := <-w.texts:
			_, _ = out.Write(text) // there is no other place to report the error to
			continue
		default:
		}
		select {
		case text := <-w.texts:
			_, _ = out.Write(text)
		case <-w.closed:
			if len(w.texts) == 0 {
				return
			}
		}
	}
}

// Write takes a text. It does not block, and its error is always nil.
func (w *Writer) Write(text []byte) (int, error) {
	select {
	case w.texts <- bytes.Clone(text):
	default:
	}
	return len(text), nil
}

// Close waits until all is written, for at most two seconds. What is written after that is lost.
func (w *Writer) Close() {
	close(w.closed)
	select {
	case <-w.flushed:
	case <-time.After(closeTimeout):
	}
}
