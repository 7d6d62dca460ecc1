package command

import (
	"io"
	"os"

	"golang.org/x/term"
)

// terminalOf returns the terminal that w writes to, or nil if w is no terminal.
func terminalOf(w io.Writer) *os.File {
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}
