package command

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

const (
	// barDelay is how long a file is read before a bar is shown. Most files take less.
	barDelay = 500 * time.Millisecond
	// lineInterval is the time between two lines of progress without a terminal.
	lineInterval = 10 * time.Second
)

// progress shows on standard error how much has been read: with a bar on a terminal, else with
// a line in each lineInterval.
type progress struct {
	out      io.Writer
	terminal bool
}

func newProgress(streams Streams) progress {
	return progress{streams.Err, isTerminal(streams.Err) && streams.Getenv("TERM") != "dumb"}
}

// reader returns a reader that shows its progress. size is -1 if it is not known.
func (p progress) reader(name string, r io.ReadCloser, size int64) io.ReadCloser {
	return &progressReader{ReadCloser: r, progress: p, name: name, size: size}
}

// progressReader is a stream that shows how much of it has been read.
type progressReader struct {
	io.ReadCloser
	progress progress
	name     string
	size     int64 // -1: not known

	read     int64
	start    time.Time                // of the first Read
	lastLine time.Time                // when the last line was written, at first start
	bar      *progressbar.ProgressBar // nil until it is shown
}

// Read reads from the stream and shows the progress.
func (r *progressReader) Read(to []byte) (int, error) {
	n, err := r.ReadCloser.Read(to)
	r.read += int64(n)
	now := time.Now()
	if r.start.IsZero() {
		r.start, r.lastLine = now, now
	}
	if r.progress.terminal {
		if barErr := r.showBar(now.Sub(r.start), err != nil); err == nil {
			err = barErr // an error of the stream stays unwrapped, because callers compare it with io.EOF
		}
	} else if now.Sub(r.lastLine) >= lineInterval {
		r.lastLine = now
		fmt.Fprintf(r.progress.out, "shutdownplan: %s: %d MB read\n", r.name, r.read/1_000_000)
	}
	return n, err
}

// showBar updates the bar, and removes it at the end of the stream.
func (r *progressReader) showBar(since time.Duration, end bool) error {
	if r.bar == nil {
		if since < barDelay || end {
			return nil
		}
		r.bar = progressbar.NewOptions64(r.size,
			progressbar.OptionSetWriter(r.progress.out), progressbar.OptionSetDescription("read"),
			progressbar.OptionShowBytes(true), progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
			// With these options the bar fits into 40 columns.
			progressbar.OptionSetWidth(5), progressbar.OptionShowTotalBytes(false), progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionClearOnFinish())
	}
	if end {
		return r.bar.Finish()
	}
	if r.size > 0 {
		return r.bar.Set64(min(r.read, r.size)) // the file may have grown
	}
	return r.bar.Set64(r.read)
}
