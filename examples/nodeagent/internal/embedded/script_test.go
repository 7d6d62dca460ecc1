package embedded_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/embedded"
)

func TestScripts(t *testing.T) {
	for script, want := range map[string]string{
		"":                                      "",
		"exits 3s after TERM":                   "",
		"ignores TERM":                          "",
		"exec takes 2s":                         "",
		" exits  5s after TERM , ignores TERM,": "",
		"exits soon after TERM":                 `"exits soon after TERM": "soon" is no time such as 3s or 500ms`,
		"exits -1s after TERM":                  `"exits -1s after TERM": "-1s" is no time`,
		"exits 5 after TERM":                    `"exits 5 after TERM": "5" is no time`,
		"ignores term":                          `"ignores term" is not understood; known are`,
		"ignores TERM, runs for 5s":             `"runs for 5s" is not understood`,
	} {
		_, err := embedded.New([]*v1.Pod{podWith(script)})
		if want == "" {
			require.NoError(t, err, script)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}
