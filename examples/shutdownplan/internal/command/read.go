package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/podlist"
)

// read reads all that the arguments name.
func read(ctx context.Context, streams Streams, cluster *podlist.Cluster, args []string) error {
	p := newProgress(streams)
	open := func(file string) (io.ReadCloser, error) {
		f, err := os.Open(file)
		if err != nil {
			return nil, err // a PathError names the file
		}
		size := int64(-1)
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			size = info.Size()
		}
		return p.reader(file, f, size), nil
	}
	for _, arg := range args {
		if err := readOne(ctx, cluster, arg, p.reader("standard input", io.NopCloser(streams.In), -1), open); err != nil {
			return err
		}
	}
	return nil
}

func readOne(ctx context.Context, cluster *podlist.Cluster, arg string, in io.Reader, open func(string) (io.ReadCloser, error)) (err error) {
	if arg == "-" {
		return cluster.Read(ctx, "standard input", in)
	}
	info, err := os.Stat(arg)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return cluster.ReadFolder(ctx, arg, open)
	}
	r, err := open(arg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return cluster.Read(ctx, arg, r)
}

// silence is how long a reading is not spoken of: most take less.
const silence = 500 * time.Millisecond

// sayEvery is how often a line is written where there is no terminal.
const sayEvery = 10 * time.Second

// progress shows on standard error how much has been read: as a bar on a terminal, else
// as a line from time to time.
type progress struct {
	out      io.Writer
	terminal bool
}

func newProgress(streams Streams) progress {
	return progress{streams.Err, isTerminal(streams.Err) && streams.Getenv("TERM") != "dumb"}
}

func (p progress) reader(name string, r io.ReadCloser, size int64) io.ReadCloser {
	return &watched{ReadCloser: r, progress: p, name: name, size: size}
}

// watched is a stream whose reading is shown.
type watched struct {
	io.ReadCloser
	progress progress
	name     string
	size     int64 // -1: not known

	read    int64
	started time.Time // of the first reading
	said    time.Time
	bar     *progressbar.ProgressBar
}

// Read reads, and shows it.
func (w *watched) Read(to []byte) (int, error) {
	n, err := w.ReadCloser.Read(to)
	w.read += int64(n)
	now := time.Now()
	if w.started.IsZero() {
		w.started, w.said = now, now
	}
	if w.progress.terminal {
		if shownErr := w.show(now.Sub(w.started), err != nil); err == nil {
			err = shownErr // io.EOF stays what it is, for those who compare
		}
	} else if now.Sub(w.said) >= sayEvery {
		w.said = now
		fmt.Fprintf(w.progress.out, "shutdownplan: %s: %d MB read\n", w.name, w.read/1_000_000)
	}
	return n, err
}

// show moves the bar on, and takes it away at the end.
func (w *watched) show(since time.Duration, end bool) error {
	if w.bar == nil {
		if since < silence || end {
			return nil
		}
		w.bar = progressbar.NewOptions64(w.size,
			progressbar.OptionSetWriter(w.progress.out), progressbar.OptionSetDescription("read"),
			progressbar.OptionShowBytes(true), progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
			// It fits into 40 columns.
			progressbar.OptionSetWidth(5), progressbar.OptionShowTotalBytes(false), progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionClearOnFinish())
	}
	if end {
		return w.bar.Finish()
	}
	if w.size > 0 {
		return w.bar.Set64(min(w.read, w.size)) // a file may grow
	}
	return w.bar.Set64(w.read)
}
