package plan_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The package documentation shows the timelines of ExampleBudget_Fit.
func TestTheDocumentationShowsTheTimelinesOfTheExample(t *testing.T) {
	page, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, limit := range []time.Duration{60 * second, 36 * second, 15 * second} {
		require.Contains(t, string(page), timeline(fit(budget(twoBuckets()), limit)))
	}
}
