package embedded_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/embedded"
)

// Valid scripts are accepted. One with an invalid time, an unknown field or another form is an error that
// names the annotation.
func TestScripts(t *testing.T) {
	for script, want := range map[string]string{
		"":                                      "",
		"{exitAfterTerm: 3s}":                   "",
		"{ignoreTerm: true}":                    "",
		"{execTakes: 2s}":                       "",
		"{exitAfterTerm: 5s, ignoreTerm: true}": "",
		"{exitAfterTerm: soon}":                 `invalid duration "soon"`,
		"{exitAfterTerm: -1s}":                  "must not be negative",
		"{ignoresTerm: true}":                   `unknown field "ignoresTerm"`,
		"dances":                                "cannot unmarshal string",
	} {
		_, err := embedded.New([]*v1.Pod{podWith(script)})
		if want == "" {
			require.NoError(t, err, script)
			continue
		}
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "annotation node.kubegrace.dev/script.app")
	}
}
