package kubeletconfig_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// header is the beginning of a configuration file.
const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// graceDurations returns a configuration with the two shutdown durations.
func graceDurations(total, critical time.Duration) (c plan.Config) {
	c.ShutdownGracePeriod.Duration, c.ShutdownGracePeriodCriticalPods.Duration = total, critical
	return c
}

// writeFile writes a configuration file and returns its path.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// The fields of a Config are read from a file, or from an answer of a kubelet's /configz. All other fields are ignored,
// even if their values are invalid (maxPods: many) or they are unknown (ofANewerKubelet).
func TestLoad(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want kubeletconfig.Config
	}{
		"nothing set": {text: header},
		"a file": {
			text: header + "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\nstaticPodPath: /etc/kubernetes/manifests\nmaxPods: many\nfeatureGates: {A: true}\n",
			want: kubeletconfig.Config{Shutdown: graceDurations(30*time.Second, 10*time.Second), StaticPodPath: "/etc/kubernetes/manifests", FeatureGates: map[string]bool{"A": true}},
		},
		"configz": {
			text: `{"kubeletconfig":{"enableServer":true,"shutdownGracePeriod":"1m0s","shutdownGracePeriodCriticalPods":"20s","ofANewerKubelet":1}}`,
			want: kubeletconfig.Config{Shutdown: graceDurations(time.Minute, 20*time.Second)},
		},
		"configz by priority": {
			text: `{"kubeletconfig":{"shutdownGracePeriod":"0s","shutdownGracePeriodCriticalPods":"0s","shutdownGracePeriodByPodPriority":[{"priority":7,"shutdownGracePeriodSeconds":9}]}}`,
			want: kubeletconfig.Config{Shutdown: plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{{Priority: 7, ShutdownGracePeriodSeconds: 9}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := kubeletconfig.Load(writeFile(t, test.text), "")
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// An error names the file and the field, and says what is wrong. A misspelled shutdown field is an error, because the
// graceful node shutdown would be off if the field were ignored.
func TestErrorsNameTheFileAndTheField(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"an invalid duration":          {text: header + "shutdownGracePeriod: soon\n", want: `within "/shutdownGracePeriod": time: invalid duration "soon"`},
		"a misspelled field":           {text: header + "shutdownGracePeriodCriticalPod: 10s\n", want: `unknown object member name "shutdownGracePeriodCriticalPod"`},
		"a misspelled field in a list": {text: header + "shutdownGracePeriodByPodPriority: [{priority: 0, seconds: 5}]\n", want: `unknown object member name "seconds" within "/shutdownGracePeriodByPodPriority/0"`},
		"another version":              {text: "apiVersion: v2\nkind: KubeletConfiguration\n", want: `is apiVersion "v2", kind "KubeletConfiguration"; wanted is "kubelet.config.k8s.io/v1beta1", kind "KubeletConfiguration"`},
		"an invalid feature gate":      {text: header + "featureGates: {A: sometimes}\n", want: `within "/featureGates/A"`},
		"a list":                       {text: "- a\n", want: "wanted is a KubeletConfiguration"},
		"an empty file":                {text: "", want: "has 0 documents"},
		"two documents":                {text: header + "---\n" + header, want: "has 2 documents"},
		"an invalid answer of configz": {text: `{"kubeletconfig": 5}`, want: "unmarshal JSON number"},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, test.text)
			_, err := kubeletconfig.Load(file, "")
			require.ErrorContains(t, err, file+": ")
			require.ErrorContains(t, err, test.want)
		})
	}
	_, err := kubeletconfig.Load("/nonexistent/kubelet.yaml", "")
	require.ErrorContains(t, err, "/nonexistent/kubelet.yaml")
	_, err = kubeletconfig.Load("", "/nonexistent/kubelet.conf.d")
	require.ErrorContains(t, err, "/nonexistent/kubelet.conf.d")
}

// writeDropIns writes a main file and drop-ins, and returns the path of the main file and the folder of the drop-ins.
func writeDropIns(t *testing.T, dropIns map[string]string) (file, folder string) {
	t.Helper()
	file = writeFile(t, header+"shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\nfeatureGates: {A: true, B: true}\n")
	folder = t.TempDir()
	for name, text := range dropIns {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(header+text), 0o600))
	}
	return file, folder
}

// Drop-ins are merged into the main file in the order of their paths: 10-a.conf, 15/more.conf, 20-b.conf. The last value of a field
// counts, and maps are merged key by key. A file whose name does not end in .conf is ignored. Drop-ins count without a main file too.
func TestDropIns(t *testing.T) {
	file, dropIns := writeDropIns(t, map[string]string{
		"10-a.conf":    "shutdownGracePeriod: 40s\nfeatureGates: {B: false}\n",
		"15/more.conf": "shutdownGracePeriodCriticalPods: 15s\n",
		"20-b.conf":    "shutdownGracePeriod: 50s\n",
		"90-off.yaml":  "shutdownGracePeriod: 1s\n",
	})
	got, err := kubeletconfig.Load(file, dropIns)
	require.NoError(t, err)
	require.Equal(t, kubeletconfig.Config{Shutdown: graceDurations(50*time.Second, 15*time.Second), FeatureGates: map[string]bool{"A": true, "B": false}}, got)
	got, err = kubeletconfig.Load("", dropIns)
	require.NoError(t, err)
	require.Equal(t, kubeletconfig.Config{Shutdown: graceDurations(50*time.Second, 15*time.Second), FeatureGates: map[string]bool{"B": false}}, got)
}

// An error names the drop-in that causes it.
func TestAnErrorNamesTheDropIn(t *testing.T) {
	file, dropIns := writeDropIns(t, map[string]string{"10-a.conf": "shutdownGracePeriod: 40s\n", "30-bad.conf": "shutdownGracePeriod: soon\n"})
	_, err := kubeletconfig.Load(file, dropIns)
	require.ErrorContains(t, err, filepath.Join(dropIns, "30-bad.conf")+": ")
}

// A feature gate of the file overrides the default. Gates that the agent does not have are returned as unknown.
func TestSetFeatureGates(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.NoError(t, lifecycle.AddFeatureGates(gate))
	require.NoError(t, shutdown.AddFeatureGates(gate))
	unknown, err := kubeletconfig.SetFeatureGates(gate, map[string]bool{
		"PodLifecycleSleepAction": false,
		"ZNotOurs":                true,
		"AlsoNotOurs":             false,
	})
	require.NoError(t, err)
	require.Equal(t, []string{"AlsoNotOurs", "ZNotOurs"}, unknown)
	require.False(t, gate.Enabled(lifecycle.PodLifecycleSleepAction), "the file counts")
	require.True(t, gate.Enabled(shutdown.GracefulNodeShutdownBasedOnPodPriority), "the default stays")
}
