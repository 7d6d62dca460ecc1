package podlist

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

// splitObjects gives the objects of a YAML stream, each as a document of its own:
// its documents, and the items of those that are lists. Whoever takes a text may
// keep it.
//
// A list is split by the indentation of its lines: in a block sequence only an item
// begins with a dash there, and whatever is in an item is indented further. A list
// in another form is given as one object. One that is too large is not kept.
func splitObjects(r io.Reader, take func(text []byte) error) error {
	s := splitter{take: take, indent: none}
	lines := bufio.NewReaderSize(r, readSize)
	for {
		line, err := readLine(lines)
		if len(line) > 0 {
			if err := s.line(line); err != nil {
				return err
			}
		}
		if len(s.text) > document.MaxDocumentBytes {
			return errTooLarge
		}
		switch {
		case errors.Is(err, io.EOF):
			return s.document()
		case errors.Is(err, errTooLarge):
			return err
		case err != nil:
			return fmt.Errorf("failed to read: %w", err)
		}
	}
}

// readLine gives the next line, with its end, until it is called again.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := slices.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) && len(long) <= document.MaxDocumentBytes {
		line, err = r.ReadSlice('\n')
		long = append(long, line...)
	}
	if len(long) > document.MaxDocumentBytes {
		return nil, errTooLarge
	}
	return long, err
}

// The values of splitter.indent where no item is being read.
const (
	none    = -1 // no list
	waiting = -2 // the key items was read, and no item yet
)

// splitter splits one stream.
type splitter struct {
	take   func(text []byte) error
	text   []byte // of the document, or of the item, so far
	indent int    // of the items, or one of the constants above
	listed bool   // the document was a list: what is around the items says nothing
	kind   bool   // the document says its own kind
}

// errCutOff is of a list whose kind was not read. kubectl writes it after the items.
var errCutOff = errors.New("the list says no kind: its end is missing, or the line \"kind: List\"")

// line takes in the next line.
func (s *splitter) line(line []byte) error {
	content := bytes.TrimRight(line, " \t\r\n")
	switch {
	case bytes.Equal(content, []byte("---")) || bytes.HasPrefix(line, []byte("--- ")) || bytes.Equal(content, []byte("...")):
		return s.document()
	case s.indent == none:
		s.kind = s.kind || bytes.HasPrefix(line, []byte("kind:"))
		s.text = append(s.text, line...)
		if string(content) == "items:" {
			s.indent = waiting
		}
		return nil
	}
	indent := len(content) - len(bytes.TrimLeft(content, " "))
	rest := content[indent:]
	item := len(rest) > 0 && rest[0] == '-' && (len(rest) == 1 || rest[1] == ' ')
	switch {
	case len(rest) == 0 || rest[0] == '#' && s.indent == waiting:
		s.text = append(s.text, line...)
	case s.indent == waiting && !item:
		s.indent = none
		s.text = append(s.text, line...)
	case s.indent == waiting:
		s.listed, s.indent, s.text = true, indent, nil
		s.begin(line, indent)
	case indent == s.indent && item:
		if err := s.flush(); err != nil {
			return err
		}
		s.begin(line, indent)
	case indent < s.indent || indent == s.indent && rest[0] != '#':
		if err := s.flush(); err != nil {
			return err
		}
		s.indent = none
		return s.line(line)
	default:
		s.text = append(s.text, line...)
	}
	return nil
}

// begin begins an item: without its dash it is a document of its own.
func (s *splitter) begin(line []byte, indent int) {
	s.text = append(make([]byte, 0, 8<<10), line...)
	s.text[indent] = ' '
}

// flush gives what was read.
func (s *splitter) flush() error {
	text := s.text
	s.text = nil
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return s.take(text)
}

// document ends a document.
func (s *splitter) document() error {
	inItem := s.indent >= 0
	around, cutOff := s.listed && !inItem, s.listed && !s.kind
	s.indent, s.listed, s.kind = none, false, false
	if cutOff {
		return errCutOff
	}
	if around {
		s.text = nil
		return nil
	}
	return s.flush()
}
