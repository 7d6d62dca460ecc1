package agent_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/shutdown"
)

// rbac.yaml allows all requests that the agent sends to the API server, with each policy,
// and no others.
func TestRBACAllowsExactlyTheRequestsOfTheAgent(t *testing.T) {
	docs, err := document.Read("../../rbac.yaml")
	require.NoError(t, err)
	role, err := document.Decode[rbacv1.ClusterRole](docs[0])
	require.NoError(t, err)
	_, err = document.Decode[rbacv1.ClusterRoleBinding](docs[1])
	require.NoError(t, err)
	needed := map[string]bool{}
	for _, policy := range []shutdown.PodPolicy{shutdown.PolicySetTerminal, shutdown.PolicyDelete} {
		inBubble(t, func(t *testing.T, b *testbed) {
			b.addPod("web", 0, "exits 1s after TERM")
			b.addPod("db", 0, "exits by itself after 3s").Spec.RestartPolicy = v1.RestartPolicyNever
			server := b.withAPIServer()
			f := b.followManifests()
			b.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy { return policy }
			b.run()
			b.advance(time.Minute)
			f.change(b, f.pods[0])
			require.NoError(t, b.terminate())
			for _, action := range server.Actions() {
				resource := action.GetResource().Resource
				if sub := action.GetSubresource(); sub != "" {
					resource += "/" + sub
				}
				needed[action.GetVerb()+" "+resource] = true
			}
		})
	}
	var allowed []string
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			allowed = append(allowed, verb+" "+rule.Resources[0])
		}
	}
	for request := range needed {
		require.Contains(t, allowed, request)
	}
	// Repeated events would be counted by a patch or an update; this test has none.
	allowed = slices.DeleteFunc(allowed, func(request string) bool { return request == "update events" || request == "patch events" })
	for _, request := range allowed {
		require.True(t, needed[request], request)
	}
}
