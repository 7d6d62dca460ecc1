package shutdown

// StoredReport reads the report of the last shutdown from the folder of the state files
// ([Options.StateDir]), for a program that shows it without being the agent. A shutdown
// that had not come to its end when the file was written has a report without an end. found
// is false where none is stored; a file that cannot be used is an error that names it. The
// folder is not locked, and nothing is written.
func StoredReport(dir string) (report Report, found bool, err error) {
	p, err := readProgress(dir)
	if p == nil || err != nil {
		return Report{}, false, err
	}
	return p.Report, true, nil
}
