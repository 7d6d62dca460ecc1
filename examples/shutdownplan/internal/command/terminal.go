package command

import (
	"os"

	"golang.org/x/term"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/output"
)

// usualWidth is that of a screen whose width is not known.
const usualWidth = 80

// isTerminal tells whether a stream is one.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// screenOf is what standard output can show. NO_COLOR and TERM=dumb are heeded.
func screenOf(streams Streams) output.Screen {
	s := output.Screen{Width: usualWidth, ASCII: streams.Getenv("TERM") == "dumb"}
	if !isTerminal(streams.Out) {
		return s
	}
	s.Color = streams.Getenv("NO_COLOR") == "" && !s.ASCII
	if width, _, err := term.GetSize(int(streams.Out.(*os.File).Fd())); err == nil && width > 0 {
		s.Width = width
	}
	return s
}
