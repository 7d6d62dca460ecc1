// Package output writes to a terminal, a pipe or a file without blocking its caller.
//
//	out := output.New(os.Stdout)
//	defer out.Close()
//	fmt.Fprintln(out, "3 of 3 pods run.")
//
// A reader that is slow or has stopped reading must not delay a shutdown.
//
// # Concurrency properties
//
// All methods of a [Writer] may be called concurrently. A goroutine writes what was
// buffered. It ends after [Writer.Close], unless a write of it does not return.
//
// # Failure modes
//
// Errors are not reported. Output is lost if it cannot be written, for example to a closed
// terminal or a full disk, and if it does not fit into the buffer of 1 MiB because the
// reader is slow.
//
// # Testing
//
// New takes any io.Writer. A writer works in a testing/synctest bubble.
package output

import (
	"io"
	"sync"
	"time"
)

const (
	// bufferSize is how many bytes are kept for a slow reader.
	bufferSize = 1 << 20
	// closeTimeout bounds the wait of Close for a slow reader.
	closeTimeout = 2 * time.Second
)

// Writer is a buffered [io.Writer] that does not block. Make one with [New].
type Writer struct {
	out     io.Writer
	changed chan struct{} // has a value after buffer or closed has changed
	flushed chan struct{} // closed when all was written after Close

	mu     sync.Mutex // guards the fields below; never held while out is written to
	buffer []byte
	closed bool
}

// New makes a writer that writes to out.
func New(out io.Writer) *Writer {
	w := &Writer{out: out, changed: make(chan struct{}, 1), flushed: make(chan struct{})}
	go w.flush()
	return w
}

// Write buffers a text. It does not block, and its error is always nil. A text that does
// not fit into the buffer is lost as a whole.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	if len(w.buffer)+len(text) <= bufferSize {
		w.buffer = append(w.buffer, text...)
	}
	w.mu.Unlock()
	w.signalChange()
	return len(text), nil
}

// Close waits until the buffer is written, for at most two seconds. The Writer must not be
// used after that.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.signalChange()
	select {
	case <-w.flushed:
	case <-time.After(closeTimeout):
	}
}

func (w *Writer) signalChange() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// flush writes the buffer whenever it has changed, until the writer is closed.
func (w *Writer) flush() {
	defer close(w.flushed)
	for {
		w.mu.Lock()
		text, closed := w.buffer, w.closed
		w.buffer = nil
		w.mu.Unlock()
		switch {
		case len(text) > 0:
			_, _ = w.out.Write(text) // there is no other place to report the error to
		case closed:
			return
		default:
			<-w.changed
		}
	}
}
