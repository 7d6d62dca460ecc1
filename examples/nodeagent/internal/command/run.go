package command

import (
	"context"
	"os"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/agent"
)

// run makes the agent and runs it. A signal that arrives before the agent is made ends run
// at once.
func run(ctx context.Context, s *setup) error {
	a, interrupted, err := s.agentOrSignal(ctx)
	if err != nil {
		return err
	}
	if interrupted != nil {
		s.view.Say(agent.SignalName(interrupted) + ": leaving. No pod was started.")
		return nil
	}
	return a.Run(klog.NewContext(ctx, s.logger))
}

// agentOrSignal returns the agent, or the signal that arrived before the agent was made. It
// does not wait for the goroutine then: reading from a file system that hangs cannot be
// cancelled, and the program is about to end.
func (s *setup) agentOrSignal(ctx context.Context) (*agent.Agent, os.Signal, error) {
	type result struct {
		agent *agent.Agent
		err   error
	}
	results := make(chan result, 1)
	go func() {
		a, err := s.agent(ctx)
		results <- result{a, err}
	}()
	select {
	case r := <-results:
		return r.agent, nil, r.err
	case sig := <-s.signals:
		return nil, sig, nil
	}
}
