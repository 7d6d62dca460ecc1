package command

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/apiserver"
)

// apiServer connects to the API server of --kubeconfig, and returns the pods as static
// pods. Without --kubeconfig it returns nil and the pods as they are.
func (s *setup) apiServer(ctx context.Context, pods []*v1.Pod) (*apiserver.Client, []*v1.Pod, error) {
	if s.kubeconfig == "" {
		return nil, pods, nil
	}
	node, err := s.node()
	if err != nil {
		return nil, nil, err
	}
	config, err := apiserver.Load(s.kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	if pods, err = apiserver.StaticPods(pods, node, s.firstRead); err != nil {
		return nil, nil, err
	}
	client, err := apiserver.Connect(klog.NewContext(ctx, s.logger), config, node, pods)
	if err != nil {
		return nil, nil, fmt.Errorf("--kubeconfig: %s: %w", s.kubeconfig, err)
	}
	if err := s.checkNode(ctx, client); err != nil {
		client.Close()
		return nil, nil, err
	}
	return client, pods, nil
}

// checkNode returns an error if the API server has no such node. An API server that does
// not answer is only a warning: static pods run without one.
func (s *setup) checkNode(ctx context.Context, client *apiserver.Client) error {
	known, err := client.NodeExists(ctx)
	switch {
	case err != nil:
		s.warn(fmt.Sprintf("the API server of %s cannot be asked, the pods run without it until it can: %v", s.kubeconfig, err))
	case !known:
		return field.Invalid(field.NewPath("--node-name"), client.Node().Name, "the API server has no node of this name")
	}
	return nil
}
