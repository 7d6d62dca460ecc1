package shutdown

import (
	"context"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// policies are the pod policies by kind of shutdown, and the errors of Options.Policy.
type policies struct {
	known map[source.Kind]node.Policy
	errs  map[source.Kind]error
}

// askPolicies calls Options.Policy for all kinds of shutdown in advance, so that no drain waits for it. If
// that does not return in time, PolicySetTerminal is used for all.
func (s *shell) askPolicies(ctx context.Context) {
	kinds := append(source.Kinds(), source.KindUnknown)
	asked := call.Start(ctx, s.calls, "Options.Policy", func(context.Context) (policies, error) {
		p := policies{known: map[source.Kind]node.Policy{}, errs: map[source.Kind]error{}}
		for _, kind := range kinds {
			policy, err := s.policy(kind)
			p.known[kind] = node.Policy(policy)
			if err != nil {
				p.errs[kind] = err
			}
		}
		return p, nil
	})
	p, err := asked.Await(ctx, time.Now().Add(answerTime))
	if err != nil {
		p = policies{errs: map[source.Kind]error{}}
		for _, kind := range kinds {
			p.errs[kind] = fmt.Errorf("failed to get the pod policy, using %s: %w", PolicySetTerminal, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policyErrs = p.errs
	s.stepLocked(node.Policies(p.known))
}

// policy asks Options.Policy for the pod policy of a kind of shutdown. The error says what is wrong with it;
// the policy that is returned is used anyway.
func (s *settings) policy(kind source.Kind) (PodPolicy, error) {
	policy := s.opts.Policy(kind)
	if policy == PolicyDelete && !s.opts.Plan.Steps.Statuses {
		return policy, fmt.Errorf("pod policy %s for a shutdown of kind %q deletes no pod: Options.Reporter is no StatusFlusher", policy, kind)
	}
	if !policy.isKnown() {
		return PolicySetTerminal, fmt.Errorf("unknown pod policy %q for a shutdown of kind %q, using %s", policy, kind, PolicySetTerminal)
	}
	return policy, nil
}
