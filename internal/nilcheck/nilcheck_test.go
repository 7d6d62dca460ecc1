package nilcheck_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/nilcheck"
)

// reader is a type whose pointer implements an interface.
type reader struct{ io.Reader }

// A nil pointer, function, map, channel or slice in an interface is a mistake. A plain nil is no mistake: it
// means that the option is not set.
func TestTypedNils(t *testing.T) {
	var nilPointer *reader
	var nilInterface io.Reader
	for _, value := range []any{nilPointer, io.Reader(nilPointer), (func())(nil), map[int]int(nil), (chan int)(nil), []int(nil)} {
		require.True(t, nilcheck.IsTypedNil(value), "%T", value)
	}
	for _, value := range []any{nil, nilInterface, reader{}, &reader{}, 0, func() {}, []int{}} {
		require.False(t, nilcheck.IsTypedNil(value), "%T", value)
	}
}

// Option returns an error that names the option and the type of its typed nil.
func TestOption(t *testing.T) {
	require.EqualError(t, nilcheck.Option("Runtime", (*reader)(nil)), "Runtime is a nil *nilcheck_test.reader: leave it out or set a value")
	require.NoError(t, nilcheck.Option("Runtime", nil))
	require.NoError(t, nilcheck.Option("Runtime", &reader{}))
}
