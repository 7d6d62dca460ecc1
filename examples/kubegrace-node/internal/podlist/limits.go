package podlist

import (
	"errors"
	"fmt"
	"io"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

// readAheadBytes is how many bytes behind an object the JSON decoder may read with it.
const readAheadBytes = 64 << 10

// walkBudget returns how many steps the walk over a YAML object of size bytes may take: one for
// each value and one for each byte of a string. Without aliases no walk takes more, because a
// value has at least one byte, and an escape of two bytes stands for at most three.
func walkBudget(size int) int { return 1000 + 2*size }

var (
	errTooLarge = fmt.Errorf("is too large: it has more than %d bytes (3 MiB), which are the limit of an object", document.MaxDocumentBytes)
	errAliases  = errors.New("is too large: its aliases stand for more than twice its bytes")
)

// limitedReader is a reader that returns an error at a limit, which can be moved.
type limitedReader struct {
	io.Reader
	tooLarge    error
	read, limit int64 // bytes
}

func (l *limitedReader) Read(to []byte) (int, error) {
	left := l.limit - l.read
	if left <= 0 {
		return 0, l.tooLarge
	}
	n, err := l.Reader.Read(to[:min(int64(len(to)), left)])
	l.read += int64(n)
	return n, err
}
