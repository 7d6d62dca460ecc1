package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/shutdown"
)

// failures is an error if a shutdown has not stopped all of its pods, or if
// something else went wrong in it.
func failures(report shutdown.Report) error {
	var errs []error
	for _, p := range report.Pods {
		if p.Error != "" {
			errs = append(errs, fmt.Errorf("pod %s/%s was not stopped: %s", p.Namespace, p.Name, p.Error))
		}
	}
	for _, text := range report.Errors {
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

// addReported adds to a snapshot what the API server was not told, if there is one.
func (l *loop) addReported(s *view.Snapshot, report shutdown.Report) {
	if l.opts.APIServer == nil {
		return
	}
	if err := l.opts.APIServer.Unheard(); err != nil {
		s.Unheard = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	for _, p := range report.Pods {
		if p.Unflushed {
			s.Unacknowledged = append(s.Unacknowledged, p.Namespace+"/"+p.Name)
		}
	}
}
