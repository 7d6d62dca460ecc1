package podlist

import (
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

// What a value must be.
const (
	mapping = "a mapping of fields"
	list    = "a list"
	str     = "a string"
	whole   = "a whole number"
)

// values is an object, JSON or YAML, as it is read: a value is asked for what it is
// wanted to be, and is an error if it is something else.
type values interface {
	// object goes through the fields of an object; each is for the function to read, or,
	// where it says false, is skipped. Null counts as an empty object.
	object(field func(name []byte) (read bool, err error)) error
	// array goes through the items of an array; null counts as an empty one.
	array(item func(i int) error) error
	// text gives a string, which is good until the next call; null is "".
	text() ([]byte, error)
	// number gives a whole number of so many bits; false for null.
	number(bits int) (n int64, ok bool, err error)
	// null and yes tell whether the value is null, or true, and do not read it.
	null() bool
	yes() bool
	// next is called when an object has been read: what follows belongs to the next one.
	next()
}

// scanner walks over JSON without keeping it.
type scanner struct {
	json  *jsontext.Decoder
	input *bounded
	room  *[]byte // of the last text
}

var _ values = scanner{}

// newScanner reads names that are given twice and invalid UTF-8 as they are, as
// kubectl does: neither matters here, and both cost time to find.
func newScanner(r io.Reader) scanner {
	input := &bounded{Reader: r}
	s := scanner{jsontext.NewDecoder(input, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), input, new([]byte)}
	s.next()
	return s
}

func (s scanner) next() { s.input.most = s.json.InputOffset() + document.MaxDocumentBytes + readAhead }

func (s scanner) object(field func(name []byte) (read bool, err error)) error {
	return s.each('{', func(int) error {
		name, err := s.json.ReadValue()
		if err != nil {
			return err
		}
		read, err := field(name[1 : len(name)-1])
		if err == nil && !read {
			err = s.json.SkipValue()
		}
		return err
	})
}

func (s scanner) array(item func(i int) error) error { return s.each('[', item) }

// each goes through what is in an object or an array.
func (s scanner) each(open jsontext.Kind, member func(i int) error) error {
	if kind := s.json.PeekKind(); kind != open && kind > 0 && kind != 'n' {
		return s.wanted(map[jsontext.Kind]string{'{': mapping, '[': list}[open])
	}
	start, err := s.json.ReadToken()
	if err != nil || start.Kind() == 'n' {
		return err
	}
	for i := 0; s.json.PeekKind() != open+2; i++ { // in ASCII } is { and 2, and so is ]
		if err := member(i); err != nil {
			return err
		}
	}
	_, err = s.json.ReadToken()
	return err
}

func (s scanner) text() ([]byte, error) {
	switch s.json.PeekKind() {
	case '"', 'n', 0:
	default:
		return nil, s.wanted(str)
	}
	value, err := s.json.ReadValue()
	if err != nil || value[0] == 'n' {
		return nil, err
	}
	*s.room, err = jsontext.AppendUnquote((*s.room)[:0], value)
	return *s.room, err
}

func (s scanner) number(bits int) (n int64, ok bool, err error) {
	switch s.json.PeekKind() {
	case '0', 'n', 0:
	default:
		return 0, false, s.wanted(whole)
	}
	value, err := s.json.ReadValue()
	if err != nil || value[0] == 'n' {
		return 0, false, err
	}
	n, err = wholeNumber(string(value), bits)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", s.json.StackPointer(), err)
	}
	return n, true, nil
}

func wholeNumber(text string, bits int) (int64, error) {
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%s is no whole number of %d bits", text, bits)
	}
	return n, nil
}

func (s scanner) null() bool { return s.json.PeekKind() == 'n' }

func (s scanner) yes() bool { return s.json.PeekKind() == 't' }

// wanted says that the value that comes next is of the wrong type.
func (s scanner) wanted(what string) error {
	value, err := s.json.ReadValue()
	if err != nil {
		return err
	}
	return wrongType(string(s.json.StackPointer()), string(value), what)
}

// wrongType shows the beginning of a value that should be something else.
func wrongType(pointer, value, what string) error {
	if len(value) > 40 {
		value = value[:40] + "…"
	}
	return fmt.Errorf("%s: %s, must be %s", pointer, value, what)
}
