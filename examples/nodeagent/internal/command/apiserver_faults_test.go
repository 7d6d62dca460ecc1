package command_test

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
)

func TestServerThatIsAwayFromTheStart(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.Die()
	p := c.run(map[string]string{"web.yaml": scripted("web", "")})
	p.waitFor("1 of 1 pods run.")
	require.Contains(t, p.out.String(), "the pods run without it until it can: ")
	require.Equal(t, 1, p.terminate())
	require.Contains(t, p.out.String(), "Warning: the API server does not know that this node shut down: ")
	require.Contains(t, p.out.String(), "Warning: the API server has not accepted the final status of 1 pod: default/web-"+nodeName)
	require.Contains(t, p.out.String(), "1 of 1 pod stopped in time.")
}

// The mirror pods are created when the API server comes up.
func TestServerThatComesUpLater(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 5)
	c.Die()
	p := c.run(map[string]string{"web.yaml": scripted("web", "")})
	p.waitFor("1 of 1 pods run.")
	require.NoError(t, c.Revive())
	c.waitReady("web")
}

func TestServerThatDiesInTheShutdown(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4)
	c.onHook("web", c.Die)
	p := c.run(map[string]string{"web.yaml": c.scriptedWithHook("web", "exits 10ms after TERM"), "db.yaml": scripted("db", "")})
	c.waitReady("web", "db")
	require.Equal(t, 1, p.terminate())
	require.NotContains(t, p.out.String(), "does not know that this node shut down")
	require.Contains(t, p.out.String(), "default/web-"+nodeName)
	require.Regexp(t, `has not accepted the final status of .*default/web-`+nodeName, p.out.String())
	require.Contains(t, p.out.String(), "2 of 2 pods stopped in time.")
}

// A mirror pod that could not be created before the shutdown is not created in it.
func TestNoMirrorPodIsCreatedInAShutdown(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 5)
	c.Script(apiserverproxy.Rules(apiserverproxy.Rule{
		Verb: "create", Resource: "pods", Fault: apiserverproxy.Fault{Status: http.StatusInternalServerError},
	}))
	c.onHook("web", func() { c.Script(nil) })
	p := c.run(map[string]string{"web.yaml": strings.Replace(c.scriptedWithHook("web", "exits 2s after TERM"), "60", "3", 1)})
	c.eventually("a mirror is tried", func() bool {
		return slices.ContainsFunc(c.Requests(), func(r apiserverproxy.Request) bool { return r.String() == "create pods default" })
	})
	p.waitFor("1 of 1 pods run.")
	require.Zero(t, p.terminate(), p.stderr.String())
	require.Nil(t, c.pod("web"))
}

func TestSecondSignalNamesThePodsThatWereNotReported(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 60)
	p := c.run(map[string]string{"web.yaml": scripted("web", "ignores TERM")})
	c.waitReady("web")
	p.signal(syscall.SIGTERM)
	p.waitFor("got SIGTERM, is ending")
	p.signal(syscall.SIGTERM)
	p.waitFor("A second signal ends the waiting.")
	require.Equal(t, 1, p.terminate())
	require.Contains(t, p.out.String(), "has not accepted the final status of 1 pod: default/web-"+nodeName)
}
