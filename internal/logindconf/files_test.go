package logindconf

import (
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

// fileSystem returns the root of a host with these files.
func fileSystem(content map[string]string) fstest.MapFS {
	host := fstest.MapFS{}
	for name, text := range content {
		host[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return host
}

// limitOf returns the limit of a host, and the file that sets it, as if there were no ignored files.
func limitOf(host fs.FS, ignored ...string) (file string, limit time.Duration) {
	if last := Last(Files(host, ignored...)); last != nil {
		return last.Path, last.Limit
	}
	return "", Default
}

// logind reads its main file and then the drop-ins, which are sorted by their names and not by their directories. The
// last file that sets InhibitDelayMaxSec counts. If no file sets it, the default of 5 s counts.
func TestTheLastFileSetsTheLimit(t *testing.T) {
	const login = "[Login]\nInhibitDelayMaxSec="
	for name, test := range map[string]struct {
		files map[string]string
		file  string // the one whose limit counts; "": the default counts
		limit time.Duration
	}{
		"no file":     {files: nil, file: "", limit: 5 * time.Second},
		"a main file": {files: map[string]string{"etc/systemd/logind.conf": login + "7"}, file: "/etc/systemd/logind.conf", limit: 7 * time.Second},
		"only the first of two main files is read":                  {files: map[string]string{"etc/systemd/logind.conf": "", "usr/lib/systemd/logind.conf": login + "7"}, file: "", limit: 5 * time.Second},
		"a main file of the vendor":                                 {files: map[string]string{"usr/lib/systemd/logind.conf": login + "7"}, file: "/usr/lib/systemd/logind.conf", limit: 7 * time.Second},
		"a drop-in overrides the main file":                         {files: map[string]string{"etc/systemd/logind.conf": login + "7", "lib/systemd/logind.conf.d/a.conf": login + "8"}, file: "/lib/systemd/logind.conf.d/a.conf", limit: 8 * time.Second},
		"drop-ins are sorted by name, not by directory":             {files: map[string]string{"etc/systemd/logind.conf.d/99-kubelet.conf": login + "60", "usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf": login + "30"}, file: "/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf", limit: 30 * time.Second},
		"of drop-ins with the same name the first directory counts": {files: map[string]string{"etc/systemd/logind.conf.d/a.conf": login + "1", "run/systemd/logind.conf.d/a.conf": login + "2", "usr/local/lib/systemd/logind.conf.d/a.conf": login + "3"}, file: "/etc/systemd/logind.conf.d/a.conf", limit: time.Second},
		"an empty drop-in masks those of the same name":             {files: map[string]string{"etc/systemd/logind.conf.d/a.conf": "", "run/systemd/logind.conf.d/a.conf": login + "2"}, file: "", limit: 5 * time.Second},
		"files with another suffix than .conf are not read":         {files: map[string]string{"etc/systemd/logind.conf.d/a.conf.bak": login + "1", "etc/systemd/logind.conf.d/b": login + "2"}, file: "", limit: 5 * time.Second},
		"the last line of a file counts":                            {files: map[string]string{"etc/systemd/logind.conf": login + "1\nInhibitDelayMaxSec=2\n"}, file: "/etc/systemd/logind.conf", limit: 2 * time.Second},
		"an invalid line does not count":                            {files: map[string]string{"etc/systemd/logind.conf": login + "1\nInhibitDelayMaxSec=soon\nInhibitDelayMaxSec=\n"}, file: "/etc/systemd/logind.conf", limit: time.Second},
		"a line in another section does not count":                  {files: map[string]string{"etc/systemd/logind.conf": "[Sleep]\nInhibitDelayMaxSec=9\n"}, file: "", limit: 5 * time.Second},
		"a comment does not count":                                  {files: map[string]string{"etc/systemd/logind.conf": "[Login]\n#InhibitDelayMaxSec=9\n;InhibitDelayMaxSec=9\n"}, file: "", limit: 5 * time.Second},
		"a file that is no configuration does not count":            {files: map[string]string{"etc/systemd/logind.conf.d/a.conf": login + "1\n", "etc/systemd/logind.conf.d/b.conf": "garbage"}, file: "/etc/systemd/logind.conf.d/a.conf", limit: time.Second},
		"spaces around the equals":                                  {files: map[string]string{"etc/systemd/logind.conf": "[Login]\n InhibitDelayMaxSec = 1min 5s \n"}, file: "/etc/systemd/logind.conf", limit: 65 * time.Second},
		"infinity":                                                  {files: map[string]string{"etc/systemd/logind.conf": login + "infinity"}, file: "/etc/systemd/logind.conf", limit: Unlimited},
		"a later drop-in sets something else":                       {files: map[string]string{"etc/systemd/logind.conf.d/a.conf": login + "1", "etc/systemd/logind.conf.d/b.conf": "[Login]\nKillUserProcesses=no\n"}, file: "/etc/systemd/logind.conf.d/a.conf", limit: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			file, limit := limitOf(fileSystem(test.files))
			require.Equal(t, test.file, file)
			require.Equal(t, test.limit, limit)
		})
	}
}

// There are drop-ins of the same name in /etc, with 60 s, and in /usr/lib, with 20 s. logind would read only the first. The
// caller wants it to be ignored, so the second counts.
func TestTheDropInIsIgnoredOnRequest(t *testing.T) {
	const ignored = "/etc/systemd/logind.conf.d/zz.conf"
	host := fileSystem(map[string]string{
		"etc/systemd/logind.conf.d/zz.conf":     "[Login]\nInhibitDelayMaxSec=60\n",
		"usr/lib/systemd/logind.conf.d/zz.conf": "[Login]\nInhibitDelayMaxSec=20\n",
	})
	file, limit := limitOf(host, ignored)
	require.Equal(t, "/usr/lib/systemd/logind.conf.d/zz.conf", file, "the masked file counts again")
	require.Equal(t, 20*time.Second, limit)
}

// The main file is a regular file, a named pipe, or a device. Only the regular file is read, because reading another one may
// block.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	for mode, isRead := range map[fs.FileMode]bool{0o644: true, 0o644 | fs.ModeNamedPipe: false, 0o644 | fs.ModeDevice: false} {
		host := fstest.MapFS{"etc/systemd/logind.conf": {Data: []byte("[Login]\nInhibitDelayMaxSec=7\n"), Mode: mode}}
		require.Equal(t, isRead, len(Files(host)) == 1, mode)
	}
}

// FuzzDropIn checks that no drop-in makes the limit negative, and that a drop-in without a valid limit
// does not change it.
func FuzzDropIn(f *testing.F) {
	for _, text := range []string{"[Login]\nInhibitDelayMaxSec=30\n", "[Login]\nInhibitDelayMaxSec=infinity", "[Login]\nInhibitDelayMaxSec=1min 30s\nInhibitDelayMaxSec=x\n", "InhibitDelayMaxSec=30", "[Other]\nInhibitDelayMaxSec=30\n", "[Login\n", "[Login]\nInhibitDelayMaxSec=\\\n5\n", "\x00\xff"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		host := fstest.MapFS{
			"etc/systemd/logind.conf":           {Data: []byte("[Login]\nInhibitDelayMaxSec=7\n")},
			"etc/systemd/logind.conf.d/50.conf": {Data: text},
		}
		file, limit := limitOf(host)
		require.GreaterOrEqual(t, limit, time.Duration(0))
		if file != "/etc/systemd/logind.conf.d/50.conf" {
			require.Equal(t, "/etc/systemd/logind.conf", file)
			require.Equal(t, 7*time.Second, limit)
		}
	})
}

// systemd 252 reads each of these texts as a limit of 20 s.
func TestAFileIsReadAsSystemdReadsIt(t *testing.T) {
	const login = "[Login]\n"
	for name, text := range map[string]string{
		"a line without an equals sign":              login + "garbage\nInhibitDelayMaxSec=20\ngarbage\n",
		"no key":                                     login + "=5\nInhibitDelayMaxSec=20\n",
		"a continued value":                          login + "InhibitDelayMaxSec=10s \\\n\t10s\n",
		"a continued key":                            login + "InhibitDelayMaxSec\\\n# a comment in between\n=20\n",
		"continued at the end":                       login + "InhibitDelayMaxSec=20\\",
		"a continued line ends at an empty one":      login + "KillOnlyUsers=a\\\n\nInhibitDelayMaxSec=20\n",
		"a comment is not continued":                 login + "# a \\\nInhibitDelayMaxSec=20\n",
		"two backslashes do not continue":            login + "KillOnlyUsers=a\\\\\nInhibitDelayMaxSec=20\n",
		"a byte order mark, and line ends of others": "\ufeff[Login]\r\nInhibitDelayMaxSec=20\rKillOnlyUsers=a\x00",
	} {
		t.Run(name, func(t *testing.T) {
			file, limit := limitOf(fileSystem(map[string]string{"etc/systemd/logind.conf": text}))
			require.Equal(t, 20*time.Second, limit)
			require.Equal(t, "/etc/systemd/logind.conf", file)
		})
	}
}

// systemd 252 cannot parse one of three files, and reads neither the rest of it nor the file after it.
func TestAnInvalidFileEndsTheList(t *testing.T) {
	for name, text := range map[string]string{
		"a comment after a section header": "[Login] # a\nInhibitDelayMaxSec=20\n",
		"an open section header":           "[Login\nInhibitDelayMaxSec=20\n",
		"not UTF-8":                        "[Login]\nKillOnlyUsers=\xe4\nInhibitDelayMaxSec=20\n",
	} {
		t.Run(name, func(t *testing.T) {
			files := Files(fileSystem(map[string]string{
				"etc/systemd/logind.conf":          "[Login]\nInhibitDelayMaxSec=7\n",
				"etc/systemd/logind.conf.d/b.conf": text,
				"etc/systemd/logind.conf.d/c.conf": "[Login]\nInhibitDelayMaxSec=30\n",
			}))
			require.Len(t, files, 2)
			require.Equal(t, "/etc/systemd/logind.conf.d/b.conf", files[1].Path)
			require.ErrorIs(t, files[1].Err, errInvalid)
			require.Equal(t, 7*time.Second, Last(files).Limit)
		})
	}
}
