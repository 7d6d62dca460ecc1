package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/manifest"
	"github.com/kubegrace/kubegrace/validation"
)

// folder writes files to a new folder and returns it. files maps names to contents.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

// manifestOf returns a manifest with the required fields only.
func manifestOf(name string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  containers: [{name: app, image: local/busybox}]\n"
}

func names(pods []*v1.Pod) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Namespace+"/"+pod.Name)
	}
	return all
}

func TestLoadOrderAndFormats(t *testing.T) {
	dir := folder(t, map[string]string{
		"b.yml":        manifestOf("third"),
		"a.yaml":       manifestOf("first") + "---\n" + manifestOf("second"),
		"c.json":       `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "fourth", "namespace": "shop"}, "spec": {"containers": [{"name": "app", "image": "i"}]}}`,
		".hidden.yaml": "not read",
		"a.yaml.bak":   "not read",
		"old/x.yaml":   "not read",
	})
	pods, warnings, err := manifest.Load(dir, validation.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"default/first", "default/second", "default/third", "shop/fourth"}, names(pods))
	require.Equal(t, []string{
		dir + "/a.yaml.bak: is not read, it does not end in .yaml, .yml or .json",
		dir + "/old: is a folder, its files are not read",
	}, warnings)
}

func TestLoadSetsDefaults(t *testing.T) {
	dir := folder(t, map[string]string{"pod.yaml": `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  initContainers:
  - name: proxy
    image: i
    restartPolicy: Always
    lifecycle: {preStop: {httpGet: {port: 80}}}
  containers:
  - name: app
    image: i
    lifecycle:
      postStart: {httpGet: {port: http, path: /up, scheme: HTTPS}}
      preStop: {sleep: {seconds: 3}}
`})
	pods, warnings, err := manifest.Load(dir, validation.Options{})
	require.NoError(t, err)
	require.Len(t, warnings, 2)
	require.Contains(t, warnings[0], "pod.yaml: spec.initContainers[0].lifecycle.preStop: runs when the pod begins to terminate")
	require.Contains(t, warnings[1], "pod.yaml: spec.containers[0].lifecycle.postStart (container app): is not run")
	pod := pods[0]
	require.Equal(t, "default", pod.Namespace)
	require.Equal(t, int64(30), *pod.Spec.TerminationGracePeriodSeconds)
	require.Equal(t, v1.RestartPolicyAlways, pod.Spec.RestartPolicy)
	require.Equal(t, "file", pod.Annotations["kubernetes.io/config.source"])
	require.Nil(t, pod.Spec.Priority, "priority has no default")

	preStop := pod.Spec.InitContainers[0].Lifecycle.PreStop.HTTPGet
	require.Equal(t, "/", preStop.Path)
	require.Equal(t, v1.URISchemeHTTP, preStop.Scheme)
	postStart := pod.Spec.Containers[0].Lifecycle.PostStart.HTTPGet
	require.Equal(t, "/up", postStart.Path)
	require.Equal(t, v1.URISchemeHTTPS, postStart.Scheme)
}

func TestLoadKeepsWhatIsSet(t *testing.T) {
	dir := folder(t, map[string]string{"pod.yaml": `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, uid: abc}
spec:
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  containers: [{name: app, image: i}]
`})
	pods, _, err := manifest.Load(dir, validation.Options{})
	require.NoError(t, err)
	require.Equal(t, "shop", pods[0].Namespace)
	require.EqualValues(t, "abc", pods[0].UID)
	require.Zero(t, *pods[0].Spec.TerminationGracePeriodSeconds)
	require.Equal(t, v1.RestartPolicyNever, pods[0].Spec.RestartPolicy)
}

func TestUIDDependsOnFileAndNameOnly(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": manifestOf("web") + "---\n" + manifestOf("db")})
	before, _, err := manifest.Load(dir, validation.Options{})
	require.NoError(t, err)
	require.NotEqual(t, before[0].UID, before[1].UID)

	edited := manifestOf("web") + "  terminationGracePeriodSeconds: 7\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(edited), 0o600))
	t.Chdir(dir)
	after, _, err := manifest.Load(".", validation.Options{})
	require.NoError(t, err)
	require.Equal(t, before[0].UID, after[0].UID, "the file was edited and is read by another path")

	elsewhere, _, err := manifest.Load(folder(t, map[string]string{"a.yaml": manifestOf("web")}), validation.Options{})
	require.NoError(t, err)
	require.NotEqual(t, before[0].UID, elsewhere[0].UID)
}

func TestLoadNamesFileFieldAndValue(t *testing.T) {
	pod := func(meta, spec string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: " + meta + "\nspec: " + spec + "\n"
	}
	const meta, containers = "{name: web}", "containers: [{name: app, image: i}]"
	for name, test := range map[string]struct{ text, want string }{
		"grace":          {pod(meta, "{terminationGracePeriodSeconds: soon, "+containers+"}"), `a.yaml: spec.terminationGracePeriodSeconds: Invalid value: "soon": must be a whole number`},
		"unknown field":  {pod(meta, "{terminationGracePeriod: 5, "+containers+"}"), "a.yaml: spec.terminationGracePeriod: Invalid value: 5: unknown field"},
		"second":         {manifestOf("b") + "---\n" + pod(meta, "{}"), "a.yaml (document 2): spec.containers: Required value"},
		"no name":        {pod("{}", "{"+containers+"}"), "a.yaml: metadata.name: Required value"},
		"bad name":       {pod("{name: Web}", "{"+containers+"}"), `a.yaml: metadata.name: Invalid value: "Web"`},
		"bad namespace":  {pod("{name: web, namespace: a.b}", "{"+containers+"}"), `a.yaml: metadata.namespace: Invalid value: "a.b"`},
		"deployment":     {"apiVersion: apps/v1\nkind: Pod\nmetadata: {name: a}\nspec: {" + containers + "}", `a.yaml: apiVersion: Unsupported value: "apps/v1"`},
		"service":        {"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {" + containers + "}", `a.yaml: kind: Unsupported value: "Service"`},
		"no image":       {pod(meta, "{containers: [{name: app}]}"), "a.yaml: spec.containers[0].image: Required value: of container app"},
		"name twice":     {pod(meta, "{initContainers: [{name: app, image: i}], "+containers+"}"), `a.yaml: spec.containers[0].name: Duplicate value: "app"`},
		"bad container":  {pod(meta, "{containers: [{name: a_b, image: i}]}"), `a.yaml: spec.containers[0].name: Invalid value: "a_b"`},
		"restart policy": {pod(meta, "{initContainers: [{name: p, image: i, restartPolicy: Sometimes}], "+containers+"}"), `a.yaml: spec.initContainers[0].restartPolicy: Unsupported value: "Sometimes"`},
		"ephemeral":      {pod(meta, "{ephemeralContainers: [{name: e}], "+containers+"}"), "a.yaml: spec.ephemeralContainers: Forbidden"},
		"pod twice":      {manifestOf("b") + "---\n" + manifestOf("b"), `a.yaml (document 2): metadata.name: Duplicate value: "default/b", it is also in `},
		"two handlers":   {pod(meta, "{containers: [{name: app, image: i, lifecycle: {preStop: {sleep: {seconds: 1}, exec: {command: [true]}}}}]}"), "a.yaml: spec.containers[0].lifecycle.preStop.exec.command[0]: Invalid value: true: must be a string"},
		"sleep too long": {pod(meta, "{containers: [{name: app, image: i, lifecycle: {preStop: {sleep: {seconds: 31}}}}]}"), "a.yaml: spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)"},
		"no YAML":        {"kind: [", "a.yaml: not valid YAML"},
		"another kind":   {"apiVersion: v1\nkind: Service\nspec: {ports: []}\n", `a.yaml: kind: Unsupported value: "Service": supported values: "Pod"`},
		"a list":         {"apiVersion: v1\nkind: List\nitems: []\n", `a.yaml: kind: Unsupported value: "List": supported values: "Pod": give each pod a document of its own`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := manifest.Load(folder(t, map[string]string{"a.yaml": test.text}), validation.Options{})
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestLoadReportsAllProblemsAtOnce(t *testing.T) {
	pods, _, err := manifest.Load(folder(t, map[string]string{"a.yaml": "kind: Pod\n", "b.yaml": "kind: [", "c.yaml": manifestOf("fine")}), validation.Options{})
	require.ErrorContains(t, err, "a.yaml: apiVersion")
	require.ErrorContains(t, err, "a.yaml: spec.containers")
	require.ErrorContains(t, err, "b.yaml: not valid YAML")
	require.Empty(t, pods)
}

func TestLoadDropsFieldsWhoseFeatureIsOff(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": strings.ReplaceAll(manifestOf("web"), "image: local/busybox", "image: i, lifecycle: {preStop: {sleep: {seconds: 31}}}")})
	pods, _, err := manifest.Load(dir, validation.Options{NoSleepAction: true})
	require.NoError(t, err)
	require.Nil(t, pods[0].Spec.Containers[0].Lifecycle)
}

func TestLoadChecks(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": manifestOf("web")})
	refuse := func(pod *v1.Pod) field.ErrorList {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), pod.Name, "not this one")}
	}
	_, _, err := manifest.Load(dir, validation.Options{}, refuse)
	require.EqualError(t, err, dir+`/a.yaml: metadata.name: Invalid value: "web": not this one`)
}

func TestLoadMissingFolder(t *testing.T) {
	_, _, err := manifest.Load("/nonexistent/pods", validation.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "/nonexistent/pods")
}

func TestLoadWarnsOfAnUnknownClass(t *testing.T) {
	_, warnings, err := manifest.Load(folder(t, map[string]string{"a.yaml": manifestOf("a") + "  priorityClassName: batch\n" +
		"---\n" + manifestOf("b") + "  priorityClassName: batch\n  priority: 5\n" +
		"---\n" + manifestOf("c") + "  priorityClassName: system-node-critical\n" +
		"---\n" + manifestOf("d") + "  priorityClassName: system-cluster-critical\n"}), validation.Options{})
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], `a.yaml (document 1): spec.priorityClassName: "batch" is not known`)
}

// The folder of a new node is empty, and gets its manifests later.
func TestFolderWithoutManifestsIsAWarning(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": "# nothing\n"})
	pods, warnings, err := manifest.Load(dir, validation.Options{})
	require.NoError(t, err)
	require.Empty(t, pods)
	require.Equal(t, []string{dir + ": has no pod manifests (files that end in .yaml, .yml or .json)"}, warnings)
}

func TestIgnoredFieldsAreWarnings(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  priority: 0
  volumes: [{name: data, emptyDir: {}}]
  initContainers: [{name: proxy, image: i, restartPolicy: Always, startupProbe: {tcpSocket: {port: 80}}}]
  containers:
  - name: app
    image: i
    livenessProbe: {tcpSocket: {port: 80}}
    readinessProbe: {tcpSocket: {port: 80}}
    resources: {limits: {memory: 1Gi}}
    ports: [{containerPort: 80}]
`})
	_, warnings, err := manifest.Load(dir, validation.Options{})
	require.NoError(t, err)
	at := dir + "/a.yaml: spec."
	require.Equal(t, []string{
		at + "volumes: are not made, this agent has no volumes",
		at + "initContainers[0].startupProbe (container proxy): is not run",
		at + "containers[0].livenessProbe (container app): is not run, and no container started again for it",
		at + "containers[0].readinessProbe (container app): is not run, a container that runs counts as ready",
		at + "containers[0].resources (container app): are not enforced",
		at + "containers[0].ports (container app): are not mapped, every pod is in the network of the host",
	}, warnings)
}
