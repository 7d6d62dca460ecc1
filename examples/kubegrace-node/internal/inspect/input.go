package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
)

// standardInput names the standard input in messages.
const standardInput = "standard input"

// readInputs reads the files, the folders and the standard input that the arguments name.
func readInputs(streams Streams, cluster *podlist.Cluster, args []string) error {
	for _, arg := range args {
		if err := readInput(cluster, arg, streams.In); err != nil {
			return err
		}
	}
	return nil
}

// readInput reads one argument: a file, a folder, or "-" for the standard input.
func readInput(cluster *podlist.Cluster, arg string, in io.Reader) (err error) {
	if arg == "-" {
		return cluster.Read(standardInput, in)
	}
	info, err := os.Stat(arg)
	if err != nil {
		return withWayOut(err)
	}
	if info.IsDir() {
		return withWayOut(cluster.ReadFolder(arg))
	}
	r, err := os.Open(arg)
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
