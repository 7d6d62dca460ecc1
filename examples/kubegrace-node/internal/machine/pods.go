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

// podPatience is how long the kubelet and the API server together have to answer.
const podPatience = 10 * time.Second

// InCluster is a value of [PodOptions.Kubeconfig]. It stands for the service account of the pod in which the
// program runs.
const InCluster = "in-cluster"

// PodOptions says where [State.ReadPods] finds the pods.
type PodOptions struct {
	// Root is as in [Options].
	Root string
	// Kubeconfig is the kubeconfig file for the API server, or [InCluster]. It is not looked up below Root. ""
	// means the file that the kubelet's command line names, below Root.
	Kubeconfig string
	// NodeName is the name of the node; "" means that of the kubelet's command line, or the host's.
	NodeName string
}

// NodeName returns the name of the node: that of o, of the kubelet's --hostname-override, or the host name in
// lower case.
func (s *State) NodeName(o PodOptions) string {
	if o.NodeName != "" {
		return o.NodeName
	}
	if len(s.Kubelets) > 0 && s.Kubelets[0].HostName != "" {
		return s.Kubelets[0].HostName
	}
	if o.Root != "" {
		text, _ := os.ReadFile(filepath.Join(o.Root, "etc/hostname")) // if it fails, podsOfServer says that no pods were found
		return strings.ToLower(strings.TrimSpace(string(text)))
	}
	name, _ := os.Hostname() // as above
	return strings.ToLower(name)
}

// ReadPods reads the pods of the machine into cluster: from the kubelet's read-only port, or else from the API
// server. It adds the manifests of the static pods. It returns the names of the sources that it has read. What
// fails is added to NotSeen.
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

// podsOfKubelet reads the pods from the kubelet's read-only port into cluster. The port needs no
// authentication, and is off by default.
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

// podsOfServer reads the pods of this node from the API server into cluster. It uses the kubeconfig of o
// ([InCluster]: the pod's service account), or else that of the first kubelet, whose paths are below o.Root.
// An empty list is an error: every node has pods, so the node's name is probably wrong.
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
		return fmt.Errorf("has no pods of a node %q, which --node may have to name", node)
	}
	return nil
}

// loadKubeconfig reads a kubeconfig file. Absolute paths in it are those of the host, and so are looked up
// below root.
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

// get reads the pods that fit fieldSelector from the API server into cluster. It reads the answer as a stream,
// because the list may be large.
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
