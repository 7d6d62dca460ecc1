package api

import (
	"errors"
	"fmt"

	"github.com/kubegrace/kubegrace/shutdown"
)

// PodErrors returns an error that names the pods that were not stopped, and why; nil if all were.
func (r Report) PodErrors() error {
	var errs []error
	for _, p := range r.Shutdown.Pods {
		if p.Error != "" {
			errs = append(errs, fmt.Errorf("pod %s/%s was not stopped: %s", p.Namespace, p.Name, p.Error))
		}
	}
	return errors.Join(errs...)
}

// ReportOf makes an answer of a report of package shutdown.
func ReportOf(r shutdown.Report) Report { return Report{Meta: Meta{Version, "Report"}, Shutdown: r} }
