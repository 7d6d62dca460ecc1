package command

import (
	"errors"
	"io"
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
		return err
	}
	if info.IsDir() {
		return cluster.ReadFolder(arg, open)
	}
	r, err := open(arg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return cluster.Read(arg, r)
}
