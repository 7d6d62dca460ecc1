package podlist

import (
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner walks over JSON without keeping it. What it is not asked for is skipped.
type scanner struct {
	json *jsontext.Decoder
	room *[]byte // of the last text
}

// newScanner reads names that are given twice and invalid UTF-8 as they are, as
// kubectl does: neither matters here, and both cost time to find.
func newScanner(r io.Reader) scanner {
	return scanner{jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), new([]byte)}
}

// object goes through the fields of an object; each is for the function to read, or,
// where it says false, is skipped. Null counts as an empty object.
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

// array goes through the items of an array; null counts as an empty one.
func (s scanner) array(item func(i int) error) error { return s.each('[', item) }

// each goes through what is in an object or an array.
func (s scanner) each(open jsontext.Kind, member func(i int) error) error {
	if kind := s.json.PeekKind(); kind != open && kind > 0 && kind != 'n' {
		return s.wanted(map[jsontext.Kind]string{'{': "a mapping of fields", '[': "a list"}[open])
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

// text gives a string, which is good until the next call; null is "".
func (s scanner) text() ([]byte, error) {
	switch s.json.PeekKind() {
	case '"', 'n', 0:
	default:
		return nil, s.wanted("a string")
	}
	value, err := s.json.ReadValue()
	if err != nil || value[0] == 'n' {
		return nil, err
	}
	*s.room, err = jsontext.AppendUnquote((*s.room)[:0], value)
	return *s.room, err
}

// number gives a whole number of so many bits; false for null.
func (s scanner) number(bits int) (n int64, ok bool, err error) {
	switch s.json.PeekKind() {
	case '0', 'n', 0:
	default:
		return 0, false, s.wanted("a whole number")
	}
	value, err := s.json.ReadValue()
	if err != nil || value[0] == 'n' {
		return 0, false, err
	}
	n, err = strconv.ParseInt(string(value), 10, bits)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %s is no whole number of %d bits", s.json.StackPointer(), value, bits)
	}
	return n, true, nil
}

// wanted says that the value that comes next is of the wrong type.
func (s scanner) wanted(what string) error {
	value, err := s.json.ReadValue()
	if err != nil {
		return err
	}
	text := string(value)
	if len(text) > 40 {
		text = text[:40] + "…"
	}
	return fmt.Errorf("%s: %s, must be %s", s.json.StackPointer(), text, what)
}
