package apiserver

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// Requests per second of the ordinary client: the kubelet's kubeAPIQPS and kubeAPIBurst.
const (
	ordinaryQPS   = 50
	ordinaryBurst = 100
)

// Load reads a kubeconfig file and returns the configuration of its current context.
// Paths in it are relative to the file. Every error names the file.
func Load(file string) (*rest.Config, error) {
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
	}
	for _, cluster := range loaded.Clusters {
		cluster.LocationOfOrigin = file
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

// Connect makes a Client from a configuration, which it copies. It sends no request yet.
// The requests of a shutdown get a client with a rate limit of its own, so that they
// never wait behind mirrors and events. For ctx see [New].
func Connect(ctx context.Context, config *rest.Config, node string, pods []*v1.Pod) (*Client, error) {
	urgent, err := apistatus.NewClient(config)
	if err != nil {
		return nil, err
	}
	ordinaryConfig := rest.CopyConfig(config)
	ordinaryConfig.QPS, ordinaryConfig.Burst = ordinaryQPS, ordinaryBurst
	ordinaryConfig.ContentType, ordinaryConfig.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	ordinary, err := kubernetes.NewForConfig(ordinaryConfig)
	if err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	return New(ctx, Options{Urgent: urgent, Ordinary: ordinary, NodeName: node, Pods: pods})
}
