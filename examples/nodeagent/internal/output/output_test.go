package output_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/output"
)

// reader takes what is written, once it is let.
type reader struct {
	let  chan struct{}
	err  error
	text strings.Builder
}

func (r *reader) Write(text []byte) (int, error) {
	<-r.let
	if r.err != nil {
		return 0, r.err
	}
	return r.text.Write(text)
}

func TestAllIsWrittenInOrder(t *testing.T) {
	r := &reader{let: make(chan struct{})}
	close(r.let)
	w := output.New(r)
	for _, text := range []string{"one\n", "two\n", "three\n"} {
		n, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	w.Close()
	require.Equal(t, "one\ntwo\nthree\n", r.text.String())
}

func TestWritersDoNotWaitForAReaderThatHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{let: make(chan struct{})}
		w := output.New(r)
		line := strings.Repeat("x", 1023) + "\n"
		began := time.Now()
		for range 4096 {
			_, err := w.Write([]byte(line))
			require.NoError(t, err)
		}
		require.Zero(t, time.Since(began))
		w.Close()
		require.Equal(t, 2*time.Second, time.Since(began), "the end is waited for")
		close(r.let)
		synctest.Wait()
		require.Zero(t, r.text.Len()%len(line), "lines are whole")
		require.LessOrEqual(t, r.text.Len(), 1<<20+len(line)*1024)
		require.NotZero(t, r.text.Len())
	})
}

func TestReadersThatHaveGoneAreNoFailure(t *testing.T) {
	r := &reader{let: make(chan struct{}), err: errors.New("closed")}
	close(r.let)
	w := output.New(r)
	_, err := w.Write([]byte("nobody hears"))
	require.NoError(t, err)
	w.Close()
}
