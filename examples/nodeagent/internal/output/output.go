// Package output writes to where people look, a terminal, a pipe or a file, without ever
// making the writer wait:
//
//	out := output.New(os.Stdout)
//	defer out.Close()
//
// # Concurrency properties
//
// All methods of a [Writer] may be called concurrently. One goroutine writes; it ends
// with [Writer.Close], or with the write that does not return.
//
// # Failure modes
//
// Nothing is reported: a reader that has gone, a closed terminal and a full disk cost what
// was written to them. A reader that has stopped reading costs what does not fit into a
// buffer of 1 MiB.
//
// # Testing
//
// New takes any io.Writer.
package output

import (
	"io"
	"sync"
	"time"
)

const (
	// bufferSize is how many bytes wait for a reader that is slow.
	bufferSize = 1 << 20
	// closeTimeout is how long such a reader is waited for at the end.
	closeTimeout = 2 * time.Second
)

// Writer passes on what is written to it. Make one with [New].
type Writer struct {
	out   io.Writer
	wake  chan struct{} // one token: something is to be written
	ended chan struct{} // closed once all has been written

	mu     sync.Mutex // guards all below; never held while anything is written
	buffer []byte
	closed bool
}

// New makes a writer that passes on to out.
func New(out io.Writer) *Writer {
	w := &Writer{out: out, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.pass()
	return w
}

// Write never fails, and never waits. What does not fit into the buffer is lost.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	if len(w.buffer)+len(text) <= bufferSize {
		w.buffer = append(w.buffer, text...)
	}
	w.mu.Unlock()
	w.notify()
	return len(text), nil
}

// Close waits until all has been written, for two seconds at most.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.notify()
	select {
	case <-w.ended:
	case <-time.After(closeTimeout):
	}
}

func (w *Writer) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// pass writes what has come in, until the writer is closed.
func (w *Writer) pass() {
	defer close(w.ended)
	for {
		w.mu.Lock()
		text, closed := w.buffer, w.closed
		w.buffer = nil
		w.mu.Unlock()
		switch {
		case len(text) > 0:
			_, _ = w.out.Write(text) // nobody is left who could be told
		case closed:
			return
		default:
			<-w.wake
		}
	}
}
