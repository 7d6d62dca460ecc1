package command

import (
	"context"
	"errors"
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/agent"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/embedded"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/socket"
)

// connect opens the listeners, the API server and the runtime, and makes the agent. If
// one fails, it closes the others.
func (s *setup) connect(ctx context.Context, opts agent.Options) (*agent.Agent, error) {
	klog.SetLogger(s.logger) // for libraries that log with klog
	a, err := s.open(ctx, &opts)
	if err != nil {
		return nil, errors.Join(err, closeAll(&opts))
	}
	s.announceStart(opts.Listener)
	return a, nil
}

// open puts what it opens into opts. After an error, connect closes it.
func (s *setup) open(ctx context.Context, opts *agent.Options) (_ *agent.Agent, err error) {
	if opts.Listener, err = s.listenHTTP(); err != nil {
		return nil, err
	}
	if opts.Control, err = s.listenControl(); err != nil {
		return nil, err
	}
	if opts.APIServer, opts.Pods, err = s.apiServer(ctx, opts.Pods); err != nil {
		return nil, err
	}
	if opts.Runtime, err = s.podRuntime(ctx); err != nil {
		return nil, err
	}
	return agent.New(*opts)
}

// closeAll closes what open has put into opts.
func closeAll(opts *agent.Options) error {
	var errs []error
	if opts.Runtime != nil {
		errs = append(errs, opts.Runtime.Close())
	}
	if opts.APIServer != nil {
		opts.APIServer.Close()
	}
	for _, listener := range []net.Listener{opts.Listener, opts.Control} {
		if listener != nil {
			errs = append(errs, listener.Close())
		}
	}
	return errors.Join(errs...)
}

// listenHTTP returns the listener of --listen, or nil if the flag is empty.
func (s *setup) listenHTTP() (net.Listener, error) {
	if s.listen == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return nil, field.Invalid(field.NewPath("--listen"), s.listen, err.Error())
	}
	return listener, nil
}

// listenControl returns the listener of --socket, or nil if the flag is empty.
func (s *setup) listenControl() (net.Listener, error) {
	if s.socket == "" {
		return nil, nil
	}
	listener, err := socket.Listen(s.socket, s.logger)
	if err != nil {
		return nil, fmt.Errorf("--socket: %w", err)
	}
	return listener, nil
}

// podRuntime returns the runtime of --runtime.
func (s *setup) podRuntime(ctx context.Context) (podruntime.Runtime, error) {
	if s.runtime == runtimeEmbedded {
		return embedded.New(), nil
	}
	runtime, err := cri.New(klog.NewContext(ctx, s.logger), s.endpoint, cri.Options{Gates: s.gate})
	if err != nil {
		return nil, fmt.Errorf("--container-runtime-endpoint: %w", err)
	}
	return runtime, nil
}
