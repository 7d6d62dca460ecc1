package command

import (
	"context"
	"os"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/agent"
)

// run checks everything, and then runs the agent. A signal ends the checking at once.
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

// agentOrSignal gives the agent, or the signal that came before it was ready. What is
// being read or asked then is left alone: a file system that does not answer cannot be
// hurried, and the program is about to end.
func (s *setup) agentOrSignal(ctx context.Context) (*agent.Agent, os.Signal, error) {
	type result struct {
		agent *agent.Agent
		err   error
	}
	made := make(chan result, 1)
	go func() {
		a, err := s.agent(ctx)
		made <- result{a, err}
	}()
	select {
	case r := <-made:
		return r.agent, nil, r.err
	case sig := <-s.signals:
		return nil, sig, nil
	}
}
