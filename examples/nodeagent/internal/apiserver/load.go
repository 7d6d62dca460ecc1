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

// What the ordinary client may ask for in a second: the kubelet's kubeAPIQPS and
// kubeAPIBurst.
const (
	ordinaryQPS   = 50
	ordinaryBurst = 100
)

// Load reads a kubeconfig file, with its current context, as document.ReadFile reads it. The
// error names the file.
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

// Connect makes a Client of a config, which is copied. It asks the server for nothing
// yet; ctx gives the logger. What a shutdown has to say goes through a client of its own, so that it does not
// wait behind mirrors and events.
func Connect(ctx context.Context, config *rest.Config, node string, pods []*v1.Pod) (*Client, error) {
	urgent, err := apistatus.NewClient(config)
	if err != nil {
		return nil, err
	}
	own := rest.CopyConfig(config)
	own.QPS, own.Burst = ordinaryQPS, ordinaryBurst
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	ordinary, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	return New(ctx, Options{Urgent: urgent, Ordinary: ordinary, NodeName: node, Pods: pods})
}
