package podlist

import (
	"bufio"
	"bytes"
	"io"
)

// separator begins a line between two documents, as in YAML. No text within JSON has it: a line break
// in a string is written as \n, and three dashes are no number.
const separator = "\n---"

// separatorReader reads JSON documents, and replaces the lines "---" between them by spaces.
type separatorReader struct {
	*bufio.Reader
	begun bool // the first line was looked at
}

// Read reads at least one byte; to must have room for len(separator) of them.
func (r *separatorReader) Read(to []byte) (int, error) {
	window, err := r.Peek(min(len(to)+len(separator), r.Size()))
	if len(window) == 0 {
		return 0, err
	}
	n := min(len(to), len(window))
	n = copy(to, window[:n])
	if !r.begun && bytes.HasPrefix(to[:n], []byte(separator[1:])) {
		copy(to, "   ")
	}
	r.begun = true
	for from := 0; ; {
		i := bytes.Index(window[from:], []byte(separator))
		if i < 0 || from+i >= n {
			break
		}
		from += i
		if from+len(separator) > n && from > 0 { // the next Read has it as a whole
			n = from
			break
		}
		copy(to[from:n], "\n   ")
		from += len(separator)
	}
	_, err = r.Discard(n)
	return n, err
}

var _ io.Reader = (*separatorReader)(nil)
