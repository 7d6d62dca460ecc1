package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
)

func TestListsAreReadBack(t *testing.T) {
	var first *podlist.Cluster
	for _, format := range []string{formatLines, formatList, formatYAML} {
		var text bytes.Buffer
		require.NoError(t, write(&text, format, clusterSize{nodes: 7, pods: 100}))
		require.InDelta(t, 9.5, float64(text.Len())/100/1000, 2, "KB a pod, %s", format)

		cluster := podlist.New()
		require.NoError(t, cluster.Read(format, &text))
		require.Equal(t, 100, cluster.Pods)
		require.Len(t, cluster.Nodes(), 7)
		require.Len(t, cluster.Nodes()[0].Pods[0].Hooks, 1)
		if first == nil {
			first = cluster
		}
		require.Equal(t, first.Nodes(), cluster.Nodes(), "the lists of all formats have the same pods")
	}
}

func TestWriteRefusesWrongArguments(t *testing.T) {
	var text bytes.Buffer
	require.ErrorContains(t, write(&text, "xml", clusterSize{1, 1}), `format "xml" is none of`)
	require.ErrorContains(t, write(&text, formatList, clusterSize{0, 1}), "make no cluster")
}
