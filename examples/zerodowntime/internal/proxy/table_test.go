package proxy_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/proxy"
)

func endpoint(name string, ready, serving, terminating bool) proxy.Endpoint {
	return proxy.Endpoint{Name: name, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}}
}

// picks returns the names of n picked endpoints; "" for a pick without an endpoint.
func picks(table *proxy.Table, n int) []string {
	names := make([]string, n)
	for i := range names {
		picked, _ := table.Pick()
		names[i] = picked.Name
	}
	return names
}

func TestChangesTakeEffectAfterTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := proxy.NewTable(2 * time.Second)
		require.Equal(t, []string{""}, picks(table, 1), "nothing was published")
		table.Publish([]proxy.Endpoint{endpoint("a", true, true, false)})
		<-time.After(time.Second)
		table.Publish([]proxy.Endpoint{endpoint("b", true, true, false)})
		<-time.After(time.Second - 1)
		require.Equal(t, []string{""}, picks(table, 1), "the delay is not over yet")
		<-time.After(1)
		require.Equal(t, []string{"a", "a"}, picks(table, 2), "the second version is still to come")
		<-time.After(time.Second - 1)
		require.Equal(t, []string{"a"}, picks(table, 1))
		<-time.After(1)
		require.Equal(t, []string{"b", "b"}, picks(table, 2))
		table.Publish(nil)
		<-time.After(2 * time.Second)
		require.Equal(t, []string{""}, picks(table, 1))
	})
}

func TestTableWithoutDelay(t *testing.T) {
	table := proxy.NewTable(0)
	table.Publish([]proxy.Endpoint{endpoint("a", true, true, false)})
	table.Publish([]proxy.Endpoint{endpoint("b", true, true, false)})
	require.Equal(t, []string{"b"}, picks(table, 1), "of several versions the last one is in effect")
}

func TestPickFollowsKubeProxy(t *testing.T) {
	yes := true
	for name, test := range map[string]struct {
		endpoints []proxy.Endpoint
		want      []string
	}{
		"ready ones in turn":                      {[]proxy.Endpoint{endpoint("a", true, true, false), endpoint("b", true, true, false)}, []string{"b", "a", "b"}},
		"none that terminates beside a ready one": {[]proxy.Endpoint{endpoint("a", true, true, false), endpoint("b", false, true, true)}, []string{"a", "a", "a"}},
		"those that serve and terminate if none is ready": {
			[]proxy.Endpoint{endpoint("a", false, true, true), endpoint("b", false, false, true), endpoint("c", false, false, false)},
			[]string{"a", "a", "a"},
		},
		"never one that does not serve":     {[]proxy.Endpoint{endpoint("a", false, false, true)}, []string{"", "", ""}},
		"conditions that are not set":       {[]proxy.Endpoint{{Name: "a"}}, []string{"a", "a", "a"}},
		"serving that is not set is ready":  {[]proxy.Endpoint{{Name: "a", Conditions: discoveryv1.EndpointConditions{Terminating: &yes}}}, []string{"a", "a", "a"}},
		"one that is ready and terminating": {[]proxy.Endpoint{endpoint("a", true, true, true), endpoint("b", true, true, false)}, []string{"b", "b", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			table := proxy.NewTable(0)
			table.Publish(test.endpoints)
			require.Equal(t, test.want, picks(table, 3))
		})
	}
}
