package output

import "strings"

// clean replaces all characters of a text but printable ASCII by question marks. The text may
// contain names from a file, and these may contain control characters and characters of unknown
// width, though Kubernetes allows neither.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// shortened cuts a name in its middle to a width, because the pods of one owner have names that
// only differ at their end.
func (s Screen) shortened(name string, width int) string {
	if len(name) <= width {
		return name
	}
	ellipsis := "…"
	if s.ASCII {
		ellipsis = "~"
	}
	tail := (width - 1) / 2
	return name[:width-1-tail] + ellipsis + name[len(name)-tail:]
}
