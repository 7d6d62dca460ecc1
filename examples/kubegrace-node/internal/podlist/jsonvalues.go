package podlist

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

// jsonValues walks over a JSON stream, of which it keeps nothing.
type jsonValues struct {
	json    *jsontext.Decoder
	input   *limitedReader
	scratch *[]byte // the memory of the last text
}

var _ values = jsonValues{}

// newJSONValues returns the values of a JSON stream. Like kubectl it accepts repeated names and
// invalid UTF-8, because to find them takes time and neither does harm here.
func newJSONValues(r io.Reader) jsonValues {
	input := &limitedReader{Reader: r, tooLarge: errTooLarge}
	v := jsonValues{jsontext.NewDecoder(input, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), input, new([]byte)}
	v.objectDone()
	return v
}

func (v jsonValues) objectDone() {
	v.input.limit = v.json.InputOffset() + document.MaxDocumentBytes + readAheadBytes
}

func (v jsonValues) eachField(field func(name []byte) (read bool, err error)) error {
	return v.eachMember('{', func(int) error {
		name, err := v.json.ReadValue()
		if err != nil {
			return err
		}
		read, err := field(name[1 : len(name)-1])
		if err == nil && !read {
			err = v.json.SkipValue()
		}
		return err
	})
}

func (v jsonValues) eachItem(item func(i int) error) error { return v.eachMember('[', item) }

// eachMember calls member for each member of an object or an array, which begins with open.
func (v jsonValues) eachMember(open jsontext.Kind, member func(i int) error) error {
	if kind := v.json.PeekKind(); kind != open && kind > 0 && kind != 'n' {
		return v.typeError(map[jsontext.Kind]string{'{': typeMapping, '[': typeList}[open])
	}
	start, err := v.json.ReadToken()
	if err != nil || start.Kind() == 'n' {
		return err
	}
	for i := 0; v.json.PeekKind() != open+2; i++ { // in ASCII } is { plus 2, and ] is [ plus 2
		if err := member(i); err != nil {
			return err
		}
	}
	_, err = v.json.ReadToken()
	return err
}

func (v jsonValues) text() ([]byte, error) {
	switch v.json.PeekKind() {
	case '"', 'n', 0:
	default:
		return nil, v.typeError(typeString)
	}
	value, err := v.json.ReadValue()
	if err != nil || value[0] == 'n' {
		return nil, err
	}
	*v.scratch, err = jsontext.AppendUnquote((*v.scratch)[:0], value)
	return *v.scratch, err
}

func (v jsonValues) number(bits int) (n int64, ok bool, err error) {
	switch v.json.PeekKind() {
	case '0', 'n', 0:
	default:
		return 0, false, v.typeError(typeWhole)
	}
	value, err := v.json.ReadValue()
	if err != nil || value[0] == 'n' {
		return 0, false, err
	}
	n, err = wholeNumber(string(value), bits)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", v.json.StackPointer(), err)
	}
	return n, true, nil
}

func (v jsonValues) isNull() bool { return v.json.PeekKind() == 'n' }

func (v jsonValues) isTrue() bool { return v.json.PeekKind() == 't' }

// typeError reads the next value and returns an error that says which type it must have.
func (v jsonValues) typeError(wanted string) error {
	value, err := v.json.ReadValue()
	if err != nil {
		return err
	}
	return typeError(string(v.json.StackPointer()), string(value), wanted)
}
