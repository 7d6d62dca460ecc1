package containerdtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// An image has no libraries, so only a static program works in it. For another program the error names the package to
// install. A text file and a missing file are errors too.
func TestArchiveRefusesAProgramThatIsNotStaticBusybox(t *testing.T) {
	shell := need.Program(t, "bash", "bash") // not static in any distribution
	var noImages []Image
	_, err := imageArchive(shell, noImages)
	require.EqualError(t, err, shell+" is not static, install the Debian package busybox-static")

	text := filepath.Join(t.TempDir(), "busybox")
	require.NoError(t, os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600))
	_, err = imageArchive(text, noImages)
	require.ErrorContains(t, err, text+" is not a program")

	_, err = imageArchive(filepath.Join(t.TempDir(), "nothing"), noImages)
	require.ErrorIs(t, err, os.ErrNotExist)
}
