package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// clusterSize is the size of the cluster whose pods are listed.
type clusterSize struct {
	nodes, pods int
}

func main() {
	var size clusterSize
	pflag.IntVar(&size.nodes, "nodes", 5000, "number of nodes")
	pflag.IntVar(&size.pods, "pods", 500_000, "number of pods")
	format := pflag.String("format", formatList, "`form` of the list: list (a List, as kubectl get -o json), lines (an object a line) or yaml (a List, as kubectl get -o yaml)")
	pflag.Parse()
	if err := run(*format, size); err != nil {
		fmt.Fprintln(os.Stderr, "clusterlist:", err)
		os.Exit(1)
	}
}

func run(format string, size clusterSize) error {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	if err := write(out, format, size); err != nil {
		return err
	}
	return out.Flush()
}
