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

// newLogger returns a logger that writes to log in the format of --log-format.
func newLogger(log io.Writer, format string, verbosity int) klog.Logger {
	if format == logJSON {
		// logr maps verbosity n to the slog level -n.
		options := slog.HandlerOptions{Level: slog.Level(-verbosity), ReplaceAttr: replaceLevel}
		return logr.FromSlogHandler(slog.NewJSONHandler(log, &options))
	}
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(verbosity)))
}

// replaceLevel replaces the attribute "level" as in the JSON logs of Kubernetes: by "v", the
// verbosity, or by nothing in the line of an error.
func replaceLevel(groups []string, attr slog.Attr) slog.Attr {
	level, ok := attr.Value.Any().(slog.Level)
	if len(groups) > 0 || attr.Key != slog.LevelKey || !ok {
		return attr
	}
	if level > slog.LevelInfo {
		return slog.Attr{}
	}
	return slog.Int("v", -int(level))
}

// terminalOf returns the terminal that w writes to, or nil if w is no terminal.
func terminalOf(w io.Writer) *os.File {
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}
