package nodeplan_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/podlist"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// summaryOf returns the summary for a single node.
func summaryOf(t *testing.T, config plan.Config, limit time.Duration, pods []podlist.Pod) nodeplan.Summary {
	t.Helper()
	settings, err := nodeplan.NewSettings(nodeplan.Kubegrace, config, nil, plan.Options{Limit: limit, Hooks: plan.Hooks{Publish: true, Readiness: true, Statuses: true}})
	require.NoError(t, err)
	node := &podlist.Node{Name: "node", Pods: pods}
	totals := settings.Totals()
	totals.Add(settings.Plan(node), node)
	return totals.Summary()
}

// requireEnough applies the proposed changes of the configuration and the host, and requires
// that no pod is cut short then.
func requireEnough(t *testing.T, seed uint64, n *scriptedNode) {
	t.Helper()
	s := summaryOf(t, n.config, n.limit, n.pods)
	if s.CutShort == 0 {
		require.Empty(t, s.Changes)
		return
	}
	require.NotEmpty(t, s.Changes)
	config, limit := n.config, n.limit
	for _, change := range s.Changes {
		text := strings.Join(change.Lines, "\n")
		switch {
		case strings.HasPrefix(text, "shutdownGracePeriod"):
			config = plan.Config{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), &config), text)
		case strings.Contains(text, "InhibitDelayMaxSec"):
			seconds, err := strconv.Atoi(regexp.MustCompile(`InhibitDelayMaxSec=(\d+)`).FindStringSubmatch(text)[1])
			require.NoError(t, err)
			limit = time.Duration(seconds) * time.Second
		}
	}
	after := summaryOf(t, config, limit, n.pods)
	require.Zero(t, after.CutShort, "seed %d: %+v within %v, proposed %+v", seed, n.config, n.limit, s.Changes)
}

// web returns a pod of the Deployment web.
func web(grace int64) podlist.Pod {
	return podlist.Pod{Namespace: "shop", Name: "web-7f6d-abcde", Grace: grace, OwnerKind: "Deployment", OwnerName: "web"}
}

func TestChangesOfAPod(t *testing.T) {
	config := plan.Config{}
	config.ShutdownGracePeriod.Duration = 30 * time.Second
	for name, test := range map[string]struct {
		pod  podlist.Pod
		want []string
	}{
		"enough": {web(30), nil},
		"more than the bucket": {web(60), []string{
			"shutdownGracePeriod: 1m0s", "shutdownGracePeriodCriticalPods: 0s",
			`kubectl -n shop patch deployment web -p '{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":30}}}}'`,
		}},
		"more than a day": {web(1e9), []string{
			`kubectl -n shop patch deployment web -p '{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":30}}}}'`,
		}},
		"an owner that has no template": {
			podlist.Pod{Namespace: "shop", Name: "web", Grace: 1e9, OwnerKind: "Job", OwnerName: "web"},
			[]string{"terminationGracePeriodSeconds: 30"},
		},
		"a name that a shell would run": {
			podlist.Pod{Namespace: "shop", Name: "web", Grace: 1e9, OwnerKind: "Deployment", OwnerName: "web; reboot"},
			[]string{"terminationGracePeriodSeconds: 30"},
		},
		"a hook that is longer than the pod has": {
			podlist.Pod{Namespace: "shop", Name: "web", Grace: 5, Hooks: []podlist.Hook{{Container: "app", Type: podlist.HookSleep, Seconds: 20}}},
			[]string{"terminationGracePeriodSeconds: 22"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for _, change := range summaryOf(t, config, 0, []podlist.Pod{test.pod}).Changes {
				lines = append(lines, change.Lines...)
			}
			require.Equal(t, test.want, lines)
		})
	}
}
