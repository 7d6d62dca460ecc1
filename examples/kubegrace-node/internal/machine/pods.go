package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/apiserver"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
)

// podsTimeout is how long the API server has to answer.
const podsTimeout = 10 * time.Second

// InCluster is a value of [Options.Kubeconfig]. It stands for the service account of the pod in which the
// program runs.
const InCluster = "in-cluster"

// NodeName returns the name of the node: that of the [Options], else the kubelet's --hostname-override, else the host name
// in lower case.
func (s *State) NodeName() string {
	if s.options.NodeName != "" {
		return s.options.NodeName
	}
	if len(s.Kubelets) > 0 && s.Kubelets[0].HostName != "" {
		return s.Kubelets[0].HostName
	}
	if s.options.Root != "/" {
		text, _ := os.ReadFile(s.pathBelowRoot("etc/hostname")) // if it fails, podsOfServer says that no pods were found
		return strings.ToLower(strings.TrimSpace(string(text)))
	}
	name, _ := os.Hostname() // if it fails, podsOfServer says that no pods were found
	return strings.ToLower(name)
}

// ReadPods reads the pods of the machine into cluster: from the API server, and from the manifests of the static
// pods. It returns the names of the sources that it has read. What fails is added to NotSeen.
func (s *State) ReadPods(ctx context.Context, cluster *podlist.Cluster) (sources []string) {
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	pods, err := s.podsOfServer(ctx)
	if err == nil {
		sources = []string{"the API server"}
	} else {
		s.addUnseen("the pods", fmt.Errorf("the API server: %w", err), "give --kubeconfig, or with --pods a file with what kubectl get pods -A -o json --field-selector spec.nodeName=NODE prints")
	}
	for i := range pods {
		cluster.Add(&pods[i])
	}
	if path := s.Config.StaticPodPath; path != "" {
		if err := cluster.ReadFolder(s.pathBelowRoot(path)); err != nil {
			s.addUnseen("the manifests of the static pods", err, "")
		} else {
			sources = append(sources, path)
		}
	}
	return sources
}

// podsOfServer returns the pods of this node from the API server. It uses the kubeconfig of the [Options] ([InCluster]: the
// pod's service account), or else that of the first kubelet. An empty list is an error: every node has pods, so the node's
// name is probably wrong.
func (s *State) podsOfServer(ctx context.Context) ([]v1.Pod, error) {
	file := s.options.Kubeconfig
	if file == "" && len(s.Kubelets) > 0 {
		file = s.pathBelowRoot(s.Kubelets[0].Kubeconfig)
	}
	var config *rest.Config
	var err error
	switch file {
	case "":
		err = errors.New("no kubeconfig is known")
	case InCluster:
		config, err = rest.InClusterConfig()
	default:
		config, err = apiserver.Config(file)
	}
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	node := s.NodeName()
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err == nil && len(list.Items) == 0 {
		err = fmt.Errorf("has no pods of a node %q, which --node may have to name", node)
	}
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
