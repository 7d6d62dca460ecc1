package command_test

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBadInputEndsWithOneLine(t *testing.T) {
	t.Parallel()
	portInUse, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, portInUse.Close()) })
	dir := folder(t, map[string]string{
		"good/pod.yaml":     scripted("web", "ignores TERM"),
		"manifest/pod.yaml": strings.ReplaceAll(scripted("web", ""), "60", "soon"),
		"syntax/pod.yaml":   "kind: [",
		"script/pod.yaml":   scripted("web", "dances"),
		"volume/pod.yaml":   scripted("web", "") + "  volumes: [{name: data}]\n",
		"both.yaml":         kubelet + "shutdownGracePeriod: 30s\nshutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 5}]\n",
		"negative.yaml":     kubelet + "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: -5}]\n",
		"duration.yaml":     kubelet + "shutdownGracePeriod: soon\n",
		"critical.yaml":     kubelet + "shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 10s\n",
		"priority.yaml":     kubelet + "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 5}]\nfeatureGates: {GracefulNodeShutdownBasedOnPodPriority: false}\n",
		"file":              "not a folder",
		"nothing.conf":      "",
		"kubeconfig":        startCluster(t, 5).Kubeconfig(),
		"long/pod.yaml":     scripted(strings.Repeat("a", 250), ""),
	})
	good := "--manifests=" + dir + "/good"
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no manifests":                 {nil, []string{"--manifests: Required value"}},
		"missing folder":               {[]string{"--manifests=/nonexistent"}, []string{"/nonexistent"}},
		"verbosity above 5":            {[]string{good, "-v=6"}, []string{"-v: Invalid value: 6: must be from 0 to 5"}},
		"negative verbosity":           {[]string{good, "-v=-1"}, []string{"-v: Invalid value: -1: must be from 0 to 5"}},
		"unknown log format":           {[]string{good, "--log-format=xml"}, []string{`--log-format: Unsupported value: "xml"`}},
		"negative limit":               {[]string{good, "--limit=-1s"}, []string{`--limit: Invalid value: "-1s"`}},
		"broken manifest":              {[]string{"--manifests=" + dir + "/manifest"}, []string{dir + "/manifest/pod.yaml: ", "spec.terminationGracePeriodSeconds", `"soon"`}},
		"bad YAML":                     {[]string{"--manifests=" + dir + "/syntax"}, []string{dir + "/syntax/pod.yaml: not valid YAML"}},
		"bad script":                   {[]string{"--manifests=" + dir + "/script"}, []string{dir + "/script/pod.yaml: ", "metadata.annotations[nodeagent.kubegrace.dev/script.app]", `"dances"`}},
		"unknown gate":                 {[]string{good, "--feature-gates=Teleport=true"}, []string{"--feature-gates", "Teleport"}},
		"gate value":                   {[]string{good, "--feature-gates=GracefulNodeShutdown=perhaps"}, []string{"--feature-gates", "GracefulNodeShutdown=perhaps"}},
		"missing config":               {[]string{good, "--config=/nonexistent.yaml"}, []string{"nodeagent: --config: /nonexistent.yaml: failed to read: no such file or directory"}},
		"both styles":                  {[]string{good, "--config=" + dir + "/both.yaml"}, []string{dir + "/both.yaml: ", "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod", `"shutdownGracePeriod":"30s"`}},
		"negative seconds":             {[]string{good, "--config=" + dir + "/negative.yaml"}, []string{dir + "/negative.yaml: ", "shutdownGracePeriodByPodPriority[0].shutdownGracePeriodSeconds -5"}},
		"bad duration":                 {[]string{good, "--config=" + dir + "/duration.yaml"}, []string{dir + "/duration.yaml: ", "shutdownGracePeriod: ", `"soon"`}},
		"critical too long":            {[]string{good, "--config=" + dir + "/critical.yaml"}, []string{dir + "/critical.yaml: ", "shutdownGracePeriodCriticalPods {10s} must be <= shutdownGracePeriod {5s}"}},
		"gate off":                     {[]string{good, "--config=" + dir + "/priority.yaml"}, []string{dir + "/priority.yaml: ", "requires feature gate GracefulNodeShutdownBasedOnPodPriority"}},
		"unknown runtime":              {[]string{good, "--runtime=docker"}, []string{`--runtime: Unsupported value: "docker"`, "embedded"}},
		"unknown source":               {[]string{good, "--source=acpi"}, []string{`--source: Unsupported value: "acpi"`, "logind"}},
		"missing endpoint":             {[]string{good, "--runtime=cri"}, []string{"--container-runtime-endpoint: Required value"}},
		"needless endpoint":            {[]string{good, "--container-runtime-endpoint=unix:///run/x.sock"}, []string{`--container-runtime-endpoint: Invalid value: "unix:///run/x.sock"`}},
		"bad endpoint":                 {[]string{good, "--runtime=cri", "--container-runtime-endpoint=tcp://x"}, []string{"--container-runtime-endpoint", "tcp://x"}},
		"missing endpoint socket":      {[]string{good, "--runtime=cri", "--container-runtime-endpoint=unix:///nonexistent.sock"}, []string{"--container-runtime-endpoint", "unix:///nonexistent.sock"}},
		"negative time":                {[]string{good, "--shutdown-after=-1s"}, []string{`--shutdown-after: Invalid value: "-1s"`}},
		"bad time":                     {[]string{good, "--shutdown-after=soon"}, []string{"--shutdown-after", `"soon"`}},
		"time with logind":             {[]string{good, "--source=logind", "--shutdown-after=1s"}, []string{`--shutdown-after: Invalid value: "1s"`, "--source=manual"}},
		"port in use":                  {[]string{good, "--listen=" + portInUse.Addr().String()}, []string{"--listen: ", portInUse.Addr().String(), "address already in use"}},
		"bad address":                  {[]string{good, "--listen=nonsense"}, []string{`--listen: Invalid value: "nonsense"`}},
		"state in a file":              {[]string{good, "--state-dir=" + dir + "/file"}, []string{"--state-dir: ", dir + "/file", "not a directory"}},
		"missing kubeconfig":           {[]string{good, "--kubeconfig=/nonexistent.conf"}, []string{"--kubeconfig: /nonexistent.conf: ", "no such file"}},
		"broken kubeconfig":            {[]string{good, "--kubeconfig=" + dir + "/file"}, []string{"--kubeconfig: " + dir + "/file: "}},
		"empty kubeconfig":             {[]string{good, "--kubeconfig=" + dir + "/nothing.conf"}, []string{"--kubeconfig: " + dir + "/nothing.conf: ", "no configuration has been provided"}},
		"unknown node":                 {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--node-name=node-2"}, []string{`--node-name: Invalid value: "node-2": the API server has no node of this name`}},
		"bad node name":                {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--node-name=Node_1"}, []string{`--node-name: Invalid value: "Node_1"`}},
		"node name without kubeconfig": {[]string{good, "--node-name=node-1"}, []string{`--node-name: Invalid value: "node-1": is only for --kubeconfig`}},
		"policy without kubeconfig":    {[]string{good, "--pod-policy=reboot=Delete"}, []string{`--pod-policy: Invalid value: "reboot=Delete": is only for --kubeconfig`}},
		"unknown kind":                 {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--pod-policy=restart=Delete"}, []string{`--pod-policy: Unsupported value: "restart"`, `"poweroff", "reboot", "halt", "kexec", "soft-reboot", "default"`}},
		"unknown policy":               {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--pod-policy=reboot=Fail"}, []string{`--pod-policy[reboot]: Unsupported value: "Fail"`, `"SetTerminal", "LeaveAsIs", "Delete"`}},
		"two policies":                 {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--pod-policy=reboot=Fail,restart=Delete"}, []string{`"Fail"`, `"restart"`}},
		"policy without value":         {[]string{good, "--kubeconfig=" + dir + "/kubeconfig", "--pod-policy=reboot"}, []string{"--pod-policy", "reboot must be formatted as key=value"}},
		"long name":                    {[]string{"--manifests=" + dir + "/long", "--kubeconfig=" + dir + "/kubeconfig", "--node-name=node-1"}, []string{"pod default/aaa", "metadata.name: Invalid value"}},
		"unknown flag":                 {[]string{good, "--drain"}, []string{"--drain"}},
		"argument":                     {[]string{good, "pods"}, []string{`"pods"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, test.args...)
			require.Equal(t, 1, p.waitExit())
			require.Empty(t, p.out.String(), "no pod was started")
			stderr := p.stderr.String()
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
			require.True(t, strings.HasPrefix(stderr, "nodeagent: "), stderr)
			for _, want := range test.want {
				require.Contains(t, stderr, want)
			}
		})
	}
}

func TestUnknownGatesOfTheConfigurationAreOneWarning(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"pods/pod.yaml": scripted("web", ""),
		"kubelet.yaml":  kubelet + "shutdownGracePeriod: 30s\nfeatureGates: {NodeSwap: true, CPUManager: false, PodLifecycleSleepAction: false}\n",
	})
	p := start(t, "--manifests="+dir+"/pods", "--config="+dir+"/kubelet.yaml", "--shutdown-after=1ms")
	require.Zero(t, p.waitExit())
	require.Equal(t, 1, strings.Count(p.out.String(), "featureGates"), p.out.String())
	require.Contains(t, p.out.String(), "kubelet.yaml: featureGates: not known here, and without effect: [CPUManager NodeSwap]")
	require.Empty(t, p.stderr.String())
}

// --config switches a gate off, which makes its shutdown settings an error. --feature-gates
// switches the gate on again.
func TestFeatureGatesFlagOverridesTheConfiguration(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"pods/pod.yaml": scripted("web", ""),
		"kubelet.yaml":  kubelet + "shutdownGracePeriod: 30s\nfeatureGates: {GracefulNodeShutdown: false}\n",
	})
	args := []string{"--manifests=" + dir + "/pods", "--config=" + dir + "/kubelet.yaml", "--shutdown-after=1ms"}
	require.Equal(t, 1, start(t, args...).waitExit())
	require.Zero(t, start(t, append(args, "--feature-gates=GracefulNodeShutdown=true")...).waitExit())
}

// A hook that sleeps for longer than the pod's grace period is an error. With the gate of
// sleeping hooks off, the hook is dropped.
func TestFeatureGatesApplyToManifests(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"pod.yaml": strings.ReplaceAll(scripted("web", ""), "image: local/busybox", "image: local/busybox, lifecycle: {preStop: {sleep: {seconds: 61}}}"),
	})
	args := []string{"--manifests=" + dir, "--shutdown-after=1ms"}
	require.Equal(t, 1, start(t, args...).waitExit())
	require.Zero(t, start(t, append(args, "--feature-gates=PodLifecycleSleepAction=false")...).waitExit())
}

func TestHelpNamesEveryFlag(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), program, "--help").Output()
	require.NoError(t, err)
	for _, flag := range []string{
		"--config", "--manifests", "--runtime", "--container-runtime-endpoint", "--source", "--shutdown-after",
		"--state-dir", "--listen", "--kubeconfig", "--node-name", "--pod-policy", "LeaveAsIs", "soft-reboot", "--feature-gates", "GracefulNodeShutdownBasedOnPodPriority", "--v",
	} {
		require.Contains(t, string(out), flag)
	}
}
