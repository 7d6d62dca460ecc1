package command

import (
	"io"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// newLogger writes to log, in the form of --log-format.
func newLogger(log io.Writer, format string, verbosity int) klog.Logger {
	if format == logJSON {
		// For slog the level of a detail is below that of information.
		options := slog.HandlerOptions{Level: slog.Level(-verbosity), ReplaceAttr: levelOf}
		return logr.FromSlogHandler(slog.NewJSONHandler(log, &options))
	}
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(verbosity)))
}

// levelOf says the level of a line as Kubernetes' own JSON logs do: the verbosity of
// what is told, and nothing for an error, which has an err.
func levelOf(groups []string, attr slog.Attr) slog.Attr {
	level, ok := attr.Value.Any().(slog.Level)
	if len(groups) > 0 || attr.Key != slog.LevelKey || !ok {
		return attr
	}
	if level > slog.LevelInfo {
		return slog.Attr{}
	}
	return slog.Int("v", -int(level))
}

// liveTerminal is a terminal on which something can be redrawn in place; nil: it is none,
// or a dumb one.
func liveTerminal(w io.Writer) *os.File {
	if kind := os.Getenv("TERM"); kind == "" || kind == "dumb" {
		return nil
	}
	return terminalOf(w)
}

// terminalOf is the terminal that something is written to; nil: it is none.
func terminalOf(w io.Writer) *os.File {
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}
