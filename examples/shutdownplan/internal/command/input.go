package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/podlist"
)

// standardInput names the standard input in messages.
const standardInput = "standard input"

// readInputs reads the files, the folders and the standard input that the arguments name.
func readInputs(streams Streams, cluster *podlist.Cluster, args []string) error {
	p := newProgress(streams)
	open := func(file string) (io.ReadCloser, error) {
		f, err := os.Open(file)
		if err != nil {
			return nil, err // names the file
		}
		size := int64(-1)
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			size = info.Size()
		}
		return p.reader(file, f, size), nil
	}
	for _, arg := range args {
		if err := readInput(cluster, arg, p.reader(standardInput, io.NopCloser(streams.In), -1), open); err != nil {
			return err
		}
	}
	return nil
}

// readInput reads one argument: a file, a folder, or "-" for the standard input.
func readInput(cluster *podlist.Cluster, arg string, in io.Reader, open func(string) (io.ReadCloser, error)) (err error) {
	if arg == "-" {
		return cluster.Read(standardInput, in)
	}
	info, err := os.Stat(arg)
	if err != nil {
		return withWayOut(err)
	}
	if info.IsDir() {
		return withWayOut(cluster.ReadFolder(arg, open))
	}
	r, err := open(arg)
	if err != nil {
		return withWayOut(err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return cluster.Read(arg, r)
}

// withWayOut adds to the error of a file what helps.
func withWayOut(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: wanted is a file, a folder of manifests, or - for the standard input", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: run it as a user who may read that, as root for the files of a kubelet", err)
	default:
		return err
	}
}
