package containerdtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

func TestArchiveRefusesAProgramThatIsNotStaticBusybox(t *testing.T) {
	shell := need.Program(t, "bash", "bash") // is dynamic in every distribution
	_, err := archive(shell, nil)
	require.EqualError(t, err, shell+" is not static, install the Debian package busybox-static")

	text := filepath.Join(t.TempDir(), "busybox")
	require.NoError(t, os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600))
	_, err = archive(text, nil)
	require.ErrorContains(t, err, text+" is not a program")

	_, err = archive(filepath.Join(t.TempDir(), "nothing"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}
