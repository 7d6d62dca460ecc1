package shutdown

import "github.com/kubegrace/kubegrace/shutdown/internal/store"

// StoredReport reads the report of the last shutdown from a folder of state files (see
// [Options.StateDir]), for a program that shows it and is not the agent. found is false if no
// report is stored. A file that is not usable is an error that names it. If the shutdown has not
// ended yet, the report has no end. StoredReport does not lock the folder and writes nothing.
func StoredReport(dir string) (report Report, found bool, err error) {
	r, err := store.ReadRecord(dir)
	if r == nil || err != nil || r.Report.Started.IsZero() {
		return Report{}, false, err
	}
	return reportOf(r.Report), true, nil
}
