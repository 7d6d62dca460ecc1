package output

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// defaultWidth is the width of a screen whose width is not known.
const defaultWidth = 80

// ScreenOf returns what the standard output can show; COLUMNS is the width where it is no terminal. There are colors on a terminal, unless
// NO_COLOR or TERM=dumb is set.
func ScreenOf(out io.Writer, getenv func(string) string) Screen {
	s := Screen{Width: defaultWidth, ASCII: getenv("TERM") == "dumb"}
	if columns, err := strconv.Atoi(getenv("COLUMNS")); err == nil && columns > 0 {
		s.Width = columns
	}
	file, isFile := out.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return s
	}
	s.Color = getenv("NO_COLOR") == "" && !s.ASCII
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		s.Width = width
	}
	return s
}
