package machine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// podPatience is how long each source of pods has to answer.
const podPatience = 10 * time.Second

// InCluster as a kubeconfig stands for the service account of the pod in which the program runs.
const InCluster = "in-cluster"

// PodOptions says where the pods are asked for.
type PodOptions struct {
	// Root is as in [Options].
	Root string
	// Kubeconfig is the file by which the API server is reached, or [InCluster]; "" means that of the
	// kubelet's command line, below Root.
	Kubeconfig string
	// NodeName is the name of the node; "" means that of the kubelet's command line, or the host's.
	NodeName string
	// RuntimeEndpoint is the address of the container runtime; "" means the kubelet's.
	RuntimeEndpoint string
}

// NodeName returns the name of the node.
func (s *State) NodeName(o PodOptions) string {
	if o.NodeName != "" {
		return o.NodeName
	}
	if len(s.Kubelets) > 0 && s.Kubelets[0].HostName != "" {
		return s.Kubelets[0].HostName
	}
	if o.Root != "" {
		text, _ := os.ReadFile(filepath.Join(o.Root, "etc/hostname")) // without it the API server has no such node
		return strings.ToLower(strings.TrimSpace(string(text)))
	}
	name, _ := os.Hostname() // as above
	return strings.ToLower(name)
}

// ReadPods reads the pods of the machine into a cluster: from the kubelet, else from the API server,
// else from the container runtime, and the manifests of the static pods beside them. It returns
// whom it has asked with success. What fails is in NotSeen.
func (s *State) ReadPods(ctx context.Context, cluster *podlist.Cluster, o PodOptions) (sources []string) {
	node := s.NodeName(o)
	var failed []error
	for _, source := range []struct {
		name string
		read func(context.Context, *podlist.Cluster, PodOptions, string) error
	}{{"the kubelet", s.podsOfKubelet}, {"the API server", s.podsOfServer}, {"the container runtime", s.podsOfRuntime}} {
		ctx, cancel := context.WithTimeout(ctx, podPatience)
		err := source.read(ctx, cluster, o, node)
		cancel()
		if err == nil {
			sources = append(sources, source.name)
			break
		}
		failed = append(failed, fmt.Errorf("%s: %w", source.name, err))
	}
	if len(sources) == 0 {
		s.miss("the pods", errors.New(strings.ReplaceAll(errors.Join(failed...).Error(), "\n", "; ")), "give --kubeconfig, or with --pods a file with what kubectl get pods -A -o json --field-selector spec.nodeName=NODE prints")
	}
	if path := s.Config.StaticPodPath; path != "" {
		if err := s.readManifests(cluster, filepath.Join(cmp.Or(o.Root, "/"), path)); err != nil {
			s.miss("the manifests of the static pods", err, "")
		} else {
			sources = append(sources, path)
		}
	}
	return sources
}

func (s *State) readManifests(cluster *podlist.Cluster, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	open := func(file string) (io.ReadCloser, error) { return os.Open(file) }
	if !info.IsDir() {
		return errors.New(path + ": is a file and no folder")
	}
	return cluster.ReadFolder(path, open)
}

// podsOfKubelet asks the kubelet's port without authentication, if it has one.
func (s *State) podsOfKubelet(ctx context.Context, cluster *podlist.Cluster, _ PodOptions, _ string) error {
	if s.Config.ReadOnlyPort == 0 {
		return errors.New("has no readOnlyPort")
	}
	return get(ctx, http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d/pods", s.Config.ReadOnlyPort), cluster)
}

// podsOfServer asks the API server.
func (s *State) podsOfServer(ctx context.Context, cluster *podlist.Cluster, o PodOptions, node string) error {
	file, root := o.Kubeconfig, ""
	if file == "" && len(s.Kubelets) > 0 && s.Kubelets[0].Kubeconfig != "" {
		file, root = filepath.Join(o.Root, s.Kubelets[0].Kubeconfig), o.Root
	}
	if file == "" {
		return errors.New("no kubeconfig is known")
	}
	load := func() (*rest.Config, error) { return loadKubeconfig(file, root) }
	if file == InCluster {
		load = rest.InClusterConfig
	}
	config, err := load()
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	server = server.JoinPath("/api/v1/pods")
	server.RawQuery = url.Values{"fieldSelector": {"spec.nodeName=" + node}}.Encode()
	if err := get(ctx, client, server.String(), cluster); err != nil {
		return err
	}
	if cluster.Pods == 0 && cluster.Ended == 0 {
		return fmt.Errorf("has no pods of a node %q, which --node may have to name", node) // every node has some, and a name may be wrong
	}
	return nil
}

// loadKubeconfig reads a kubeconfig. The files that it names are below root.
func loadKubeconfig(file, root string) (*rest.Config, error) {
	text, err := document.ReadFile(file)
	if err != nil {
		return nil, err
	}
	loaded, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, user := range loaded.AuthInfos {
		user.LocationOfOrigin = file
		below(root, &user.ClientCertificate, &user.ClientKey, &user.TokenFile)
	}
	for _, cluster := range loaded.Clusters {
		cluster.LocationOfOrigin = file
		below(root, &cluster.CertificateAuthority)
	}
	if err := clientcmd.ResolveLocalPaths(loaded); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return config, nil
}

// below puts absolute paths below a folder.
func below(root string, paths ...*string) {
	for _, path := range paths {
		if filepath.IsAbs(*path) {
			*path = filepath.Join(root, *path)
		}
	}
}

// get reads a list of pods from a URL.
func get(ctx context.Context, client *http.Client, from string, cluster *podlist.Cluster) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200)) // the status says enough without it
		return fmt.Errorf("%s: %s: %s", from, response.Status, bytes.TrimSpace(text))
	}
	return cluster.Read(from, response.Body)
}

// podsOfRuntime asks the container runtime, which does not know priorities and sidecars.
func (s *State) podsOfRuntime(ctx context.Context, cluster *podlist.Cluster, o PodOptions, node string) (err error) {
	endpoint := cmp.Or(o.RuntimeEndpoint, s.Config.RuntimeEndpoint)
	if len(s.Kubelets) > 0 {
		endpoint = cmp.Or(endpoint, s.Kubelets[0].RuntimeEndpoint)
	}
	path, isSocket := strings.CutPrefix(endpoint, "unix://")
	if !isSocket {
		return errors.New("no socket of it is known")
	}
	if o.RuntimeEndpoint == "" {
		path = filepath.Join(cmp.Or(o.Root, "/"), path)
	}
	runtime, err := criruntime.Dial(ctx, "unix://"+path, criruntime.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runtime.Close()) }()
	pods, err := runtime.Pods(ctx)
	if err != nil {
		return err
	}
	list := v1.PodList{}
	for _, pod := range pods {
		pod.Spec.NodeName = node
		list.Items = append(list.Items, *pod)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	s.miss("the priorities of the pods", errors.New("a container runtime does not know them, nor which containers are sidecars"), "give --kubeconfig, or --pods")
	return cluster.Read("the container runtime", bytes.NewReader(text))
}
