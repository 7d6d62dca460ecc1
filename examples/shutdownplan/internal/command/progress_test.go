package command

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// slowReader reads a megabyte a second, and ends after secondsLeft.
type slowReader struct{ secondsLeft int }

func (s *slowReader) Read(to []byte) (int, error) {
	<-time.After(time.Second)
	if s.secondsLeft--; s.secondsLeft < 0 {
		return 0, io.EOF
	}
	return min(len(to), 1_000_000), nil
}

// progressOf returns the progress that is shown while a stream is read for a number of seconds.
func progressOf(t *testing.T, terminal bool, seconds int, size int64) string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		p := progress{&out, terminal}
		r, buffer := p.reader("pods.json", io.NopCloser(&slowReader{seconds}), size), make([]byte, 1_000_000)
		var err error
		for err == nil {
			_, err = r.Read(buffer)
		}
		require.True(t, err == io.EOF, "io.EOF is not wrapped")
	})
	return out.String()
}

func TestProgressWithoutATerminalIsALineFromTimeToTime(t *testing.T) {
	require.Empty(t, progressOf(t, false, 5, 5_000_000))
	require.Equal(t, "shutdownplan: pods.json: 11 MB read\nshutdownplan: pods.json: 21 MB read\n", progressOf(t, false, 25, -1))
}

func TestProgressOnATerminalIsABarThatIsRemoved(t *testing.T) {
	for _, size := range []int64{25_000_000, 9_000_000, -1} {
		text := progressOf(t, true, 25, size)
		require.Contains(t, text, "read ")
		require.Regexp(t, `\r *\r$`, text, "the bar is removed at the end")
		require.NotContains(t, text, "\n")
		for drawn := range strings.SplitSeq(text, "\r") {
			require.LessOrEqual(t, utf8.RuneCountInString(drawn), 40, "%q", drawn)
		}
	}
	require.Contains(t, progressOf(t, true, 25, 25_000_000), "40%")
}
