package inspect

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
)

// standardInput is the name of the standard input in messages.
const standardInput = "standard input"

// readInputs reads into cluster what the arguments name: files, folders of manifests, and with "-" the
// standard input.
func readInputs(c *cobra.Command, cluster *podlist.Cluster, args []string) error {
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case arg == "-":
			err = cluster.Read(standardInput, c.InOrStdin())
		case err == nil && info.IsDir():
			err = cluster.ReadFolder(arg)
		case err == nil:
			err = readFile(cluster, arg)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readFile reads the objects of one file into cluster.
func readFile(cluster *podlist.Cluster, name string) (err error) {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return cluster.Read(name, file)
}
