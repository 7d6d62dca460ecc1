package cri_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
)

func TestNewNamesAnEndpointThatNobodyServes(t *testing.T) {
	endpoint := "unix://" + t.TempDir() + "/nobody"
	_, err := cri.New(t.Context(), endpoint, cri.Options{})
	require.ErrorContains(t, err, `failed to reach the container runtime at "`+endpoint+`"`)
	require.ErrorContains(t, err, "no such file or directory")
}
