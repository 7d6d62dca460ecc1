package virtualkubelet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/docprogram"
)

// The program at the top of doc.go is not compiled with the package, so this test compiles it.
func TestTheProgramInTheDocumentationCompiles(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"."}, docprogram.Compile(t, "."))
}
