package logind_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/logind"
)

// New rejects options with which logind would not read the drop-in. The error names the field and its
// value. On other systems than Linux, New always fails.
func TestNewNamesInvalidOptions(t *testing.T) {
	if runtime.GOOS != "linux" {
		_, err := logind.New(logind.Options{})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, runtime.GOOS)
		return
	}
	for name, test := range map[string]struct {
		options logind.Options
		field   string
		value   string
	}{
		"not read by logind": {options: logind.Options{DropInName: "50-agent"}, field: "DropInName", value: "50-agent"},
		"only the ending":    {options: logind.Options{DropInName: ".conf"}, field: "DropInName", value: ".conf"},
		"a path":             {options: logind.Options{DropInName: "../logind.conf"}, field: "DropInName", value: "../logind.conf"},
		"relative directory": {options: logind.Options{DropInDirs: []string{"etc"}}, field: "DropInDirs", value: "etc"},
		"relative root":      {options: logind.Options{HostRoot: "host"}, field: "HostRoot", value: "host"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := logind.New(test.options)
			require.ErrorContains(t, err, test.field)
			require.ErrorContains(t, err, test.value)
		})
	}
	_, err := logind.New(logind.Options{})
	require.NoError(t, err, "the zero value is the system bus of this host")
}

// A Source is nil, or zero because New has not made it. Connect, Available and RemoveDropIn return an error, and Adopt
// returns no lock.
func TestMethodsOfTheZeroSourceFail(t *testing.T) {
	for _, s := range []*logind.Source{nil, {}} {
		_, err := s.Connect(t.Context())
		for name, err := range map[string]error{
			"Available": s.Available(t.Context()), "RemoveDropIn": s.RemoveDropIn(t.Context()), "Connect": err,
		} {
			if runtime.GOOS != "linux" {
				require.ErrorIs(t, err, errors.ErrUnsupported, name)
				continue
			}
			require.EqualError(t, err, "logind: the Source was not made with New", name)
		}
		require.Nil(t, s.Adopt())
	}
}
