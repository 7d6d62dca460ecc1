package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSetKubernetes(t *testing.T) {
	got, err := setKubernetes([]byte(`module example.com/x

go 1.25.0

replace example.com/y => ../

require (
	example.com/y v0.34.0
	k8s.io/api v0.34.1
	k8s.io/klog/v2 v2.140.0
	k8s.io/utils v0.0.0-20250604170112-4c0f3b243397
)

require k8s.io/kms v0.34.2 // indirect
`), "v0.37.2")
	require.NoError(t, err)
	require.Equal(t, `module example.com/x

go 1.25.0

replace example.com/y => ../

require (
	example.com/y v0.34.0
	k8s.io/api v0.37.2
	k8s.io/klog/v2 v2.140.0
	k8s.io/utils v0.0.0-20250604170112-4c0f3b243397
)

require k8s.io/kms v0.37.2 // indirect
`, string(got))
}

func TestSetKubernetesOfWhatIsNoGoMod(t *testing.T) {
	for content, want := range map[string]string{
		"modul x":              "failed to read go.mod: go.mod:1: unknown directive: modul",
		"module example.com/x": "go.mod: requires no k8s.io/api",
	} {
		_, err := setKubernetes([]byte(content), "v0.37.2")
		require.EqualError(t, err, want)
	}
}

func TestReplaced(t *testing.T) {
	got, err := replaceKubernetes([]byte("module example.com/fork\n\nreplace example.com/x => ../x\n"), []string{"k8s.io/api", "k8s.io/client-go"}, "v0.32.13")
	require.NoError(t, err)
	require.Equal(t, `module example.com/fork

replace example.com/x => ../x

replace k8s.io/api => k8s.io/api v0.32.13

replace k8s.io/client-go => k8s.io/client-go v0.32.13
`, string(got))
	_, err = replaceKubernetes([]byte("modul x"), nil, "v0.32.13")
	require.EqualError(t, err, "failed to read go.mod: go.mod:1: unknown directive: modul")
}

func TestBuiltWith(t *testing.T) {
	list := []byte("\n\nk8s.io/api v0.34.1\nk8s.io/klog/v2 v2.140.0\nk8s.io/api v0.34.1\ngithub.com/kubegrace/kubegrace \nk8s.io/client-go v0.33.0\nk8s.io/client-go v0.33.0\n")
	require.NoError(t, builtWith(list, []string{"k8s.io/api", "k8s.io/apiserver"}, "v0.34.1"))
	require.EqualError(t, builtWith(list, []string{"k8s.io/api", "k8s.io/client-go"}, "v0.34.1"), "v0.34.1 is not what is built with: k8s.io/client-go v0.33.0")
	require.EqualError(t, builtWith(list, []string{"k8s.io/apiserver"}, "v0.34.1"), "nothing is built with Kubernetes v0.34.1")
	require.EqualError(t, builtWith(nil, []string{"k8s.io/api"}, "v0.34.1"), "nothing is built with Kubernetes v0.34.1")
}
