package virtualkubelet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/docprogram"
)

func TestTheProgramInTheDocumentationCompiles(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"."}, docprogram.Compile(t, "."))
}
