package command

import (
	"io"
	"os"

	"golang.org/x/term"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
)

// newLogger writes to log. Where that is a terminal it goes through the view,
// which may be drawing on the same one.
func newLogger(log io.Writer, v *view.View, verbosity int) klog.Logger {
	if file, ok := log.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		log = v
	}
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(verbosity)))
}
