package inspect

import (
	"os"
	"strconv"

	"golang.org/x/term"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
)

// defaultWidth is the width of a screen whose width is not known.
const defaultWidth = 80

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// screenOf returns what the standard output can show; COLUMNS is the width where it is no terminal. There are colors on a terminal, unless
// NO_COLOR or TERM=dumb is set.
func screenOf(streams Streams) output.Screen {
	s := output.Screen{Width: defaultWidth, ASCII: streams.Getenv("TERM") == "dumb"}
	if columns, err := strconv.Atoi(streams.Getenv("COLUMNS")); err == nil && columns > 0 {
		s.Width = columns
	}
	if !isTerminal(streams.Out) {
		return s
	}
	s.Color = streams.Getenv("NO_COLOR") == "" && !s.ASCII
	if width, _, err := term.GetSize(int(streams.Out.(*os.File).Fd())); err == nil && width > 0 {
		s.Width = width
	}
	return s
}
