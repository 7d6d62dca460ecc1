package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

func TestPlanWithoutWarnings(t *testing.T) {
	p := plan.New(twoBuckets(), list(pod("a", withGrace(20)), pod("b"), pod("c", withClass("system-node-critical"), withGrace(10))),
		plan.Options{Limit: 30 * time.Second})
	require.Empty(t, p.Warnings)
}

func TestPlanWarnsOfALimit(t *testing.T) {
	p := plan.New(twoBuckets(), list(pod("a", withGrace(5))), plan.Options{Limit: 6500 * time.Millisecond})
	require.Equal(t, []string{
		"the schedule takes 30s but is cut to 6s",
		"bucket 0 is cut from 20s to 0s",
		"bucket 0 has no time, its pods (1) are killed at once",
		"bucket 2000000000 is cut from 10s to 6s",
	}, p.Warnings)
}

func TestPlanWarnsOfShortBuckets(t *testing.T) {
	p := plan.New(twoBuckets(), list(
		pod("short", withGrace(20)), pod("long", withGrace(60)), pod("longer", withGrace(90)), pod("alike", withGrace(90)),
	), plan.Options{})
	require.Equal(t, []string{"bucket 0 is too short for 3 of its 4 pods: test/longer asks for 90s and gets 20s"}, p.Warnings)
}

// The warning about a bucket of 0 s names no pod.
func TestPlanWarnsOfABucketWithoutTime(t *testing.T) {
	p := plan.New(plan.Schedule{{0, 0}, {1, 0}}, list(pod("a"), pod("b", withGrace(9))), plan.Options{})
	require.Equal(t, []string{"bucket 0 has no time, its pods (2) are killed at once"}, p.Warnings)
}

func TestPlanWarnsOfUnknownClasses(t *testing.T) {
	p := plan.New(twoBuckets(), list(
		pod("a"), pod("b", withClass("gold")), pod("c", withClass("lead")), pod("d", withClass("lead"), withPriority(1)),
	), plan.Options{})
	require.Equal(t, []string{`priority class "gold": value not known, counts as 0; pods: 2, among them test/b`}, p.Warnings)
}
