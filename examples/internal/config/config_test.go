package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/examples/internal/config"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// writeConfig writes a configuration file and returns its path.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestLoad(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want config.Config
	}{
		"nothing set": {header, config.Config{}},
		"two fields": {
			header + "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n",
			config.Config{Shutdown: plan.Config{
				ShutdownGracePeriod:             metav1.Duration{Duration: 30 * time.Second},
				ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 10 * time.Second},
			}},
		},
		"by priority": {
			header + "shutdownGracePeriodByPodPriority:\n- {priority: 0, shutdownGracePeriodSeconds: 20}\n- {priority: 1000, shutdownGracePeriodSeconds: 5}\n",
			config.Config{Shutdown: plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
				{Priority: 0, ShutdownGracePeriodSeconds: 20},
				{Priority: 1000, ShutdownGracePeriodSeconds: 5},
			}}},
		},
		"gates": {
			header + "featureGates: {GracefulNodeShutdown: false, SomebodyElses: true}\n",
			config.Config{FeatureGates: map[string]bool{"GracefulNodeShutdown": false, "SomebodyElses": true}},
		},
		"other fields, whatever they are": {
			header + "failSwapOn: false\nmaxPods: many\nofANewerKubelet: {a: 1}\nshutdownGracePeriod: 1m\n",
			config.Config{Shutdown: plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: time.Minute}}},
		},
		"JSON": {
			`{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "shutdownGracePeriod": "2s"}`,
			config.Config{Shutdown: plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 2 * time.Second}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := config.Load(writeConfig(t, test.text))
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestLoadNamesFileFieldAndValue(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no duration":       {header + "shutdownGracePeriod: soon\n", `shutdownGracePeriod: Invalid value: "soon": time: invalid duration`},
		"number":            {header + "shutdownGracePeriod: 30\n", "shutdownGracePeriod: Invalid value: 30: must be a string"},
		"mistyped field":    {header + "shutdownGracePeriodCriticalPod: 10s\n", `unknown field "shutdownGracePeriodCriticalPod"`},
		"mistyped case":     {header + "ShutdownGracePeriod: 10s\n", `unknown field "ShutdownGracePeriod"`},
		"mistyped in list":  {header + "shutdownGracePeriodByPodPriority: [{priority: 0, seconds: 5}]\n", `unknown field "shutdownGracePeriodByPodPriority[0].seconds"`},
		"priority too high": {header + "shutdownGracePeriodByPodPriority: [{priority: 4000000000}]\n", "shutdownGracePeriodByPodPriority[0].priority: Invalid value: 4000000000: must be a whole number"},
		"gate":              {header + "featureGates: {GracefulNodeShutdown: sometimes}\n", `featureGates.GracefulNodeShutdown: Invalid value: "sometimes": must be true or false`},
		"other version":     {"apiVersion: v2\nkind: KubeletConfiguration\n", `is apiVersion "v2", kind "KubeletConfiguration"; wanted is "kubelet.config.k8s.io/v1beta1", kind "KubeletConfiguration"`},
		"other kind":        {"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Pod\n", `kind "Pod"; wanted is`},
		"a list":            {"- a\n", "wanted is a KubeletConfiguration"},
		"empty":             {"", "has 0 documents"},
		"two":               {header + "---\n" + header, "has 2 documents"},
		"no YAML":           {"a: [", "not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeConfig(t, test.text)
			_, err := config.Load(file)
			require.ErrorContains(t, err, file+": ")
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestLoadMissingFile(t *testing.T) {
	_, err := config.Load("/nonexistent/kubelet.yaml")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "/nonexistent/kubelet.yaml")
}

func TestDescribe(t *testing.T) {
	require.Equal(t, `{"shutdownGracePeriod":"30s","shutdownGracePeriodByPodPriority":[{"priority":7,"shutdownGracePeriodSeconds":1}]}`,
		config.Describe(plan.Config{
			ShutdownGracePeriod:              metav1.Duration{Duration: 30 * time.Second},
			ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{{Priority: 7, ShutdownGracePeriodSeconds: 1}},
		}))
}
