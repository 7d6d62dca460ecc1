package command_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// aliasBomb is a short YAML document that has 200 MB when its aliases are resolved.
const aliasBomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n" +
	"d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n" +
	"g: &g [*f, *f, *f, *f, *f, *f, *f, *f, *f, *f]\nh: [*g, *g, *g, *g, *g, *g, *g, *g, *g, *g]\n"

// Reading pipes, devices, large files and YAML with many aliases must neither hang nor use
// much memory.
func TestFilesThatCannotBeReadEndTheStartAtOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"good/pod.yaml": scripted("web", ""), "fifos/.keep": "", "bombs/pod.yaml": aliasBomb, "bomb.yaml": kubelet + aliasBomb, "zero/.keep": "", "large/.keep": ""})
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifos/pod.yaml"), 0o600))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "zero/pod.yaml")))
	large := filepath.Join(dir, "large/pod.yaml")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 100<<20))
	good := "--manifests=" + dir + "/good"
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"config from a pipe":       {[]string{good, "--config=" + fifo}, "--config: " + fifo + ": is not a regular file but a pipe (FIFO)"},
		"config from a device":     {[]string{good, "--config=/dev/zero"}, "--config: /dev/zero: is not a regular file but a device"},
		"large config":             {[]string{good, "--config=" + large}, large + ": is too large: it has 104857600 bytes or more, and 10485760 (10 MiB) are the limit"},
		"kubeconfig from a pipe":   {[]string{good, "--kubeconfig=" + fifo, "--node-name=n"}, "--kubeconfig: " + fifo + ": is not a regular file but a pipe (FIFO)"},
		"kubeconfig from a device": {[]string{good, "--kubeconfig=/dev/zero", "--node-name=n"}, "--kubeconfig: /dev/zero: is not a regular file but a device"},
		"manifest from a pipe":     {[]string{"--manifests=" + dir + "/fifos"}, dir + "/fifos/pod.yaml: is not a regular file but a pipe (FIFO)"},
		"manifest from a device":   {[]string{"--manifests=" + dir + "/zero"}, dir + "/zero/pod.yaml: is not a regular file but a device"},
		"large manifest":           {[]string{"--manifests=" + dir + "/large"}, "10485760 (10 MiB) are the limit"},
		"a bomb as a manifest":     {[]string{"--manifests=" + dir + "/bombs"}, dir + "/bombs/pod.yaml: is too large: with its aliases the document has more than 3145728 bytes (3 MiB)"},
		"a bomb as the config":     {[]string{good, "--config=" + dir + "/bomb.yaml"}, "--config: " + dir + "/bomb.yaml: is too large: with its aliases the document has more than 3145728 bytes (3 MiB)"},
		"a pipe as the folder":     {[]string{"--manifests=" + fifo}, fifo + ": is not a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, test.args...)
			require.Equal(t, 1, p.waitExit())
			require.Empty(t, p.out.String())
			require.Contains(t, p.stderr.String(), test.want)
			require.Equal(t, 1, strings.Count(p.stderr.String(), "\n"))
		})
	}
}

// The start waits for an API server that accepts connections and never answers. A signal
// ends it.
func TestSignalsEndTheStart(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, silent.Close()) })
	dir := folder(t, map[string]string{
		"pods/pod.yaml": scripted("web", ""),
		"kubeconfig": "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: http://" + silent.Addr().String() + "}}]\n" +
			"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\ncurrent-context: c\n",
	})
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := start(t, "--manifests="+dir+"/pods", "--kubeconfig="+dir+"/kubeconfig", "--node-name=n")
		connection, err := silent.Accept()
		require.NoError(t, err)
		p.signal(signal)
		require.Zero(t, p.waitExit())
		require.Contains(t, p.out.String(), ": leaving. No pod was started.")
		require.NotContains(t, p.out.String(), "run without it", "the start did not wait for its timeout")
		require.Empty(t, p.stderr.String())
		require.NoError(t, connection.Close())
	}
}
