package apiservertest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// vectors is testdata/vectors.yaml.
type vectors struct {
	FirstDelete struct {
		Cases []struct {
			Name      string
			Node      string // "": the pod is on no node
			Phase     v1.PodPhase
			TGPS, Opt *int64 // the grace period of the pod's spec, and of the delete
			Want      int64  // the grace period of the deleted pod
		}
	} `json:"check_graceful_delete"`
	RepeatedDelete struct {
		Cases [][]any // cur, opt, want_obj_grace, want_opt_grace, graceful, pending
	} `json:"before_delete"`
}

// readVectors reads the file.
func readVectors(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.yaml")
	require.NoError(t, err)
	var all vectors
	require.NoError(t, yaml.Unmarshal(data, &all))
	return all
}

// seconds converts a number from YAML.
func seconds(cell any) *int64 {
	return ptr.To(int64(cell.(float64)))
}
