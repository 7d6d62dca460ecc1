package nonblocking_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nonblocking"
)

// reader stands for the reader of the output: its Write blocks until the channel reading is closed.
type reader struct {
	reading chan struct{}
	err     error // what Write returns
	text    strings.Builder
}

// Write blocks until reading is closed.
func (r *reader) Write(text []byte) (int, error) {
	<-r.reading
	if r.err != nil {
		return 0, r.err
	}
	return r.text.Write(text)
}

// Texts arrive at the reader in order, and before Close returns.
func TestWritesAreInOrder(t *testing.T) {
	r := &reader{reading: make(chan struct{})}
	close(r.reading)
	w := nonblocking.New(r)
	for _, text := range []string{"one\n", "two\n", "three\n"} {
		n, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	w.Close()
	require.Equal(t, "one\ntwo\nthree\n", r.text.String())
}

// The reader fails. Write returns no error all the same, and neither Write nor Close blocks.
func TestAFailedReaderIsNoError(t *testing.T) {
	r := &reader{reading: make(chan struct{}), err: errors.New("closed")}
	close(r.reading)
	w := nonblocking.New(r)
	_, err := w.Write([]byte("lost"))
	require.NoError(t, err)
	w.Close()
}

// The reader has stopped. Three times as many lines are written as can wait (4096). No Write may block. Close waits for
// the reader for 2 s. When the reader continues, it gets whole lines only: at most the 4096 lines that could wait, and
// one line that was being written when the reader stopped.
func TestWriteDoesNotWaitForAReaderThatHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{reading: make(chan struct{})}
		w := nonblocking.New(r)
		line := strings.Repeat("x", 1023) + "\n"
		began := time.Now()
		for range 3 * 4096 {
			_, err := w.Write([]byte(line))
			require.NoError(t, err)
		}
		require.Zero(t, time.Since(began))
		w.Close()
		require.Equal(t, 2*time.Second, time.Since(began))

		close(r.reading) // the reader continues
		synctest.Wait()
		require.Zero(t, r.text.Len()%len(line), "no line is lost in part")
		require.LessOrEqual(t, r.text.Len(), len(line)*(4096+1))
		require.NotZero(t, r.text.Len())
	})
}
