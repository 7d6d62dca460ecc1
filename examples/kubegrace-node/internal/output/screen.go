package output

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// defaultWidth is the width of a screen whose width is not known.
const defaultWidth = 80

// ScreenOf returns the screen of the standard output. If that is no terminal, the environment variable COLUMNS
// is the width; without it the width is 80.
func ScreenOf(out io.Writer, getenv func(string) string) Screen {
	if file, isFile := out.(*os.File); isFile {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return Screen{Width: width}
		}
	}
	if columns, err := strconv.Atoi(getenv("COLUMNS")); err == nil && columns > 0 {
		return Screen{Width: columns}
	}
	return Screen{Width: defaultWidth}
}
