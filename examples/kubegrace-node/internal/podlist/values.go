package podlist

import (
	"fmt"
	"strconv"
)

// The types of values, as errors name them.
const (
	typeMapping = "a mapping of fields"
	typeList    = "a list"
	typeString  = "a string"
	typeWhole   = "a whole number"
)

// values walks over the values of an object, JSON or YAML. Each method but isNull, isTrue and
// objectDone reads the next value, and returns an error if its type is another one.
type values interface {
	// eachField calls field for each field of a mapping. field either reads the value of the
	// field or returns false, and then the value is skipped. Null is an empty mapping.
	eachField(field func(name []byte) (read bool, err error)) error
	// eachItem calls item for each item of a list, with its index. item must read it. Null is
	// an empty list.
	eachItem(item func(i int) error) error
	// text returns a string, which is valid until the next call; null is "".
	text() ([]byte, error)
	// number returns a whole number of at most bits bits; ok is false for null.
	number(bits int) (n int64, ok bool, err error)
	// isNull and isTrue tell whether the next value is null or true. They do not read it.
	isNull() bool
	isTrue() bool
	// objectDone is called at the end of each object. The size of the next object counts from
	// there.
	objectDone()
}

// wholeNumber parses a whole number of at most bits bits.
func wholeNumber(text string, bits int) (int64, error) {
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%s is no whole number of %d bits", text, bits)
	}
	return n, nil
}

// typeError says that the value at a JSON pointer must have another type. It shows the
// beginning of the value.
func typeError(pointer, value, wanted string) error {
	if len(value) > 40 {
		value = value[:40] + "…"
	}
	return fmt.Errorf("%s: %s, must be %s", pointer, value, wanted)
}
