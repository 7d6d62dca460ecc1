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
	pods := list(pod("a", withGrace(5)), pod("b", critical(), withGrace(6)))
	p := plan.New(twoBuckets(), pods, plan.Options{Limit: 6500 * time.Millisecond})
	require.Equal(t, []string{
		"the schedule takes 30s but is cut to 6s",
		"bucket 0 is cut from 20s to 0s",
		"bucket 0 has no time, its pods (1) are killed at once",
	}, p.Warnings)
	p = plan.New(twoBuckets(), pods, plan.Options{Limit: 11 * time.Second})
	require.Equal(t, []string{"the schedule takes 30s but is cut to 11s, by seconds that no pod needs"}, p.Warnings)
	p = plan.New(twoBuckets(), pods, plan.Options{Limit: 30 * time.Second})
	require.Equal(t, []int64{17, 10}, seconds(p.Schedule))
	require.Empty(t, p.Warnings, "the schedule fits, and no pod loses anything")
}

// A bucket without pods asks for no other steps.
func TestPlanWarnsOfWhatGivesWayBesideTheBuckets(t *testing.T) {
	hooks := allHooks()
	hooks.Hold = true
	pods := list(pod("a", withGrace(20)))
	p := plan.New(twoBuckets(), pods, plan.Options{Hooks: hooks, Limit: 23 * time.Second})
	require.Equal(t, []string{
		"the schedule takes 30s but is cut to 20s, by seconds that no pod needs",
		"the hold has 0s of the 10s that it asks for",
		"publishing, readiness, unmounts and final statuses have 3s of the 6s that they ask for",
	}, p.Warnings)
	p = plan.New(twoBuckets(), pods, plan.Options{Hooks: hooks, Limit: 48500 * time.Millisecond})
	require.Empty(t, p.Warnings)
}

func TestPlanWarnsOfShortBuckets(t *testing.T) {
	p := plan.New(twoBuckets(), list(
		pod("short", withGrace(20)), pod("long", withGrace(60)), pod("longer", withGrace(90)), pod("alike", withGrace(90)),
	), plan.Options{})
	require.Equal(t, []string{"bucket 0 is too short for 3 of its 4 pods: test/longer asks for 90s and gets 20s"}, p.Warnings)
}

// A single bucket and a single second count like many.
func TestPlanWarnsOfOneBucketOfOneSecond(t *testing.T) {
	p := plan.New(plan.Schedule{{0, 1}}, list(pod("a", withGrace(1))), plan.Options{Hooks: allHooks(), Limit: 3 * time.Second})
	require.Equal(t, []string{"publishing, readiness, unmounts and final statuses have 2s of the 6s that they ask for"}, p.Warnings)
}

// The warning about a bucket of 0 s names no pod.
func TestPlanWarnsOfABucketWithoutTime(t *testing.T) {
	p := plan.New(plan.Schedule{{0, 0}, {1, 0}}, list(pod("a"), pod("b", withGrace(9))), plan.Options{})
	require.Equal(t, []string{"bucket 0 has no time, its pods (2) are killed at once"}, p.Warnings)
}

func TestPlanWarnsOfUnknownClasses(t *testing.T) {
	static := pod("static", withClass("lead"), withAnnotation(source, "file"))
	p := plan.New(twoBuckets(), list(
		pod("a"), pod("b", withClass("gold")), pod("c", withClass("lead")), pod("d", withClass("lead"), withPriority(1)), static,
	), plan.Options{})
	require.Equal(t, []string{`priority class "gold": value not known, counts as 0; pods: 3, among them test/b`}, p.Warnings)
	p = plan.New(twoBuckets(), list(pod("b", withClass("gold"))), plan.Options{})
	require.Equal(t, []string{`priority class "gold": value not known, counts as 0; pods: 1, among them test/b`}, p.Warnings)
}
