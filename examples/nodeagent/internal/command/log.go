package command

import (
	"io"
	"os"

	"golang.org/x/term"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// newLogger writes to log.
func newLogger(log io.Writer, verbosity int) klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(verbosity)))
}

// terminalOf is the terminal that something is written to; nil: it is none.
func terminalOf(w io.Writer) *os.File {
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}
