package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/shutdown"
)

// reportError returns an error that names the pods that a shutdown has not stopped, and
// the first other error of the shutdown.
func reportError(report shutdown.Report) error {
	var errs []error
	for _, p := range report.Pods {
		if p.Error != "" {
			errs = append(errs, fmt.Errorf("pod %s/%s was not stopped: %s", p.Namespace, p.Name, p.Error))
		}
	}
	if len(report.Errors) > 0 {
		errs = append(errs, errors.New(report.Errors[0]))
	}
	if more := len(report.Errors) - 1; more > 0 {
		errs = append(errs, fmt.Errorf("and %d more errors like that (-v=1 logs all)", more))
	}
	return errors.Join(errs...)
}

// logErrors logs all errors of a shutdown except those of single pods.
func (l *loop) logErrors(report shutdown.Report) {
	for _, text := range report.Errors {
		l.opts.Logger.V(1).Info("Shutdown error", "err", text)
	}
}

// addNotReported adds to a snapshot what could not be reported to the API server.
func (l *loop) addNotReported(s *view.Snapshot, report shutdown.Report) {
	if l.opts.APIServer == nil {
		return
	}
	if err := l.opts.APIServer.PublishError(); err != nil {
		s.NodeStateError = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	for _, p := range report.Pods {
		if p.Unflushed {
			s.Unacknowledged = append(s.Unacknowledged, p.Namespace+"/"+p.Name)
		}
	}
}
