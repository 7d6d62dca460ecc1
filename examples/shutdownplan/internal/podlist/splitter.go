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

// splitObjects splits a YAML stream into its objects and calls emit with the text of each.
// The objects are the documents of the stream, or, of documents that are lists, their items.
// Each text is a YAML document, and emit may keep it.
//
// A list is split by the indentation of its lines: in a block sequence only a new item begins
// with a dash at the indentation of the items, and all lines of an item are indented further.
// A list in flow form is not split but emitted as one object. An object that is too large is
// an error.
func splitObjects(r io.Reader, emit func(text []byte) error) error {
	s := splitter{emit: emit, indent: outsideItems}
	lines := bufio.NewReaderSize(r, bufferBytes)
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
			return s.endDocument()
		case errors.Is(err, errTooLarge):
			return err
		case err != nil:
			return fmt.Errorf("failed to read: %w", err)
		}
	}
}

// readLine returns the next line with its line break. It is valid until the next call.
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

// The values of splitter.indent while no item is being read.
const (
	outsideItems = -1 // the next line does not belong to the items of a list
	beforeItems  = -2 // the last line was the key items, and no item has come yet
)

// splitter splits one stream.
type splitter struct {
	emit    func(text []byte) error
	text    []byte // of the current document or item, so far
	indent  int    // of the items of the current list, or one of the constants above
	isList  bool   // the current document has had items, so the text around them is no object
	hasKind bool   // the current document has had a line with its kind
}

// errCutOff is returned for a list without a kind. kubectl writes the kind after the items.
var errCutOff = errors.New("the list says no kind: its end is missing, or the line \"kind: List\"")

// line adds the next line of the stream.
func (s *splitter) line(line []byte) error {
	content := bytes.TrimRight(line, " \t\r\n")
	switch {
	case bytes.Equal(content, []byte("---")) || bytes.HasPrefix(line, []byte("--- ")) || bytes.Equal(content, []byte("...")):
		return s.endDocument()
	case s.indent == outsideItems:
		s.hasKind = s.hasKind || bytes.HasPrefix(line, []byte("kind:"))
		s.text = append(s.text, line...)
		if string(content) == "items:" {
			s.indent = beforeItems
		}
		return nil
	default:
		return s.itemLine(line, content)
	}
}

// itemLine adds a line after the key items. content is the line without the space at its end.
func (s *splitter) itemLine(line, content []byte) error {
	unindented := bytes.TrimLeft(content, " ")
	indent := len(content) - len(unindented)
	isEmpty, isComment := len(unindented) == 0, bytes.HasPrefix(unindented, []byte("#"))
	hasDash := bytes.Equal(unindented, []byte("-")) || bytes.HasPrefix(unindented, []byte("- "))
	switch {
	case isEmpty || isComment && s.indent == beforeItems:
		s.text = append(s.text, line...)
	case s.indent == beforeItems && !hasDash: // the value of items is no block sequence
		s.indent = outsideItems
		s.text = append(s.text, line...)
	case s.indent == beforeItems:
		s.isList, s.indent, s.text = true, indent, nil
		s.beginItem(line, indent)
	case indent == s.indent && hasDash:
		if err := s.emitText(); err != nil {
			return err
		}
		s.beginItem(line, indent)
	case indent < s.indent || indent == s.indent && !isComment: // the items have ended
		if err := s.emitText(); err != nil {
			return err
		}
		s.indent = outsideItems
		return s.line(line)
	default:
		s.text = append(s.text, line...)
	}
	return nil
}

// beginItem begins an item with its first line. It replaces the dash by a space, which makes
// the item a document.
func (s *splitter) beginItem(line []byte, indent int) {
	s.text = append(make([]byte, 0, 8<<10), line...)
	s.text[indent] = ' '
}

// emitText emits the current text unless it is empty, and begins a new one.
func (s *splitter) emitText() error {
	text := s.text
	s.text = nil
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return s.emit(text)
}

// endDocument ends the current document and begins a new one.
func (s *splitter) endDocument() error {
	isAroundItems, isCutOff := s.isList && s.indent < 0, s.isList && !s.hasKind
	s.indent, s.isList, s.hasKind = outsideItems, false, false
	if isCutOff {
		return errCutOff
	}
	if isAroundItems {
		s.text = nil
		return nil
	}
	return s.emitText()
}
