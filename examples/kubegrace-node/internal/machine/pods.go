package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
)

// podPatience is how long the sources of pods have to answer.
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

// ReadPods reads the pods of the machine into a cluster: from the kubelet's read-only port, else from the API server, and the
// manifests of the static pods beside them. It returns whom it has asked with success. What fails is in NotSeen.
func (s *State) ReadPods(ctx context.Context, cluster *podlist.Cluster, o PodOptions) (sources []string) {
	ctx, cancel := context.WithTimeout(ctx, podPatience)
	defer cancel()
	kubeletErr := s.podsOfKubelet(ctx, cluster)
	if kubeletErr == nil {
		sources = []string{"the kubelet"}
	} else if err := s.podsOfServer(ctx, cluster, o); err == nil {
		sources = []string{"the API server"}
	} else {
		s.miss("the pods", fmt.Errorf("the kubelet: %w; the API server: %w", kubeletErr, err), "give --kubeconfig, or with --pods a file with what kubectl get pods -A -o json --field-selector spec.nodeName=NODE prints")
	}
	if path := s.Config.StaticPodPath; path != "" {
		if err := cluster.ReadFolder(filepath.Join(cmp.Or(o.Root, "/"), path)); err != nil {
			s.miss("the manifests of the static pods", err, "")
		} else {
			sources = append(sources, path)
		}
	}
	return sources
}

// podsOfKubelet asks the kubelet's port without authentication, if it has one.
func (s *State) podsOfKubelet(ctx context.Context, cluster *podlist.Cluster) (err error) {
	if s.Config.ReadOnlyPort == 0 {
		return errors.New("has no readOnlyPort")
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/pods", s.Config.ReadOnlyPort)
	list, err := podinfo.OpenKubeletPods(ctx, url, &rest.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	return cluster.Read(url, list)
}

// podsOfServer asks the API server.
func (s *State) podsOfServer(ctx context.Context, cluster *podlist.Cluster, o PodOptions) error {
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
	node := s.NodeName(o)
	if err := get(ctx, config, "/api/v1/pods", "spec.nodeName="+node, cluster); err != nil {
		return err
	}
	if cluster.Pods == 0 && cluster.Ended == 0 {
		return fmt.Errorf("has no pods of a node %q, which --node may have to name", node) // every node has some, and a name may be wrong
	}
	return nil
}

// loadKubeconfig reads a kubeconfig. The absolute paths in it are below root.
func loadKubeconfig(file, root string) (*rest.Config, error) {
	loaded, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, err
	}
	var paths []*string
	for _, user := range loaded.AuthInfos {
		paths = append(paths, &user.ClientCertificate, &user.ClientKey, &user.TokenFile)
	}
	for _, cluster := range loaded.Clusters {
		paths = append(paths, &cluster.CertificateAuthority)
	}
	for _, path := range paths {
		if filepath.IsAbs(*path) {
			*path = filepath.Join(root, *path)
		}
	}
	err = clientcmd.ResolveLocalPaths(loaded)
	if err == nil {
		var config *rest.Config
		if config, err = clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig(); err == nil {
			return config, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", file, err)
}

// get reads a list of pods.
func get(ctx context.Context, config *rest.Config, path, fieldSelector string, cluster *podlist.Cluster) (err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	list, err := client.CoreV1().RESTClient().Get().AbsPath(path).Param("fieldSelector", fieldSelector).SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	return cluster.Read(config.Host+path, list)
}
