package podlist

import (
	"errors"
	"fmt"
	"io"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

// readAhead is how much of the objects behind it may be read together with one, in bytes.
const readAhead = 64 << 10

// walkable is how far the walk over an object of so many bytes may go, in values and in
// the bytes of those that are texts. Without aliases it is less: a value has a byte at
// least, and an escape of two bytes stands for three at most.
func walkable(size int) int { return 1000 + 2*size }

var (
	errTooLarge = fmt.Errorf("is too large: it has more than %d bytes (3 MiB), which are the limit of an object", document.MaxDocumentBytes)
	errAliases  = errors.New("is too large: its aliases stand for more than twice its bytes")
)

// bounded reads no further than it may.
type bounded struct {
	io.Reader
	read, most int64
}

func (b *bounded) Read(to []byte) (int, error) {
	left := b.most - b.read
	if left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.Reader.Read(to[:min(int64(len(to)), left)])
	b.read += int64(n)
	return n, err
}
