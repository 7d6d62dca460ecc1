//go:build linux

package logind

import (
	"strings"
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

// Of all files that logind reads, the last one that sets InhibitDelayMaxSec counts: drop-ins after the
// main file, sorted by name and not by directory. Without any, the default of 5 s counts.
func TestTheLastFileSetsTheLimit(t *testing.T) {
	const login = "[Login]\nInhibitDelayMaxSec="
	for name, test := range map[string]struct {
		files map[string]string
		file  string
		delay time.Duration
	}{
		"nothing":                     {nil, "", 5 * time.Second},
		"main file":                   {map[string]string{"etc/systemd/logind.conf": login + "7"}, "/etc/systemd/logind.conf", 7 * time.Second},
		"the first main file only":    {map[string]string{"etc/systemd/logind.conf": "", "usr/lib/systemd/logind.conf": login + "7"}, "", 5 * time.Second},
		"main file of the vendor":     {map[string]string{"usr/lib/systemd/logind.conf": login + "7"}, "/usr/lib/systemd/logind.conf", 7 * time.Second},
		"a drop-in beats main":        {map[string]string{"etc/systemd/logind.conf": login + "7", "lib/systemd/logind.conf.d/a.conf": login + "8"}, "/lib/systemd/logind.conf.d/a.conf", 8 * time.Second},
		"by name, not by directory":   {map[string]string{"etc/systemd/logind.conf.d/99-kubelet.conf": login + "60", "usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf": login + "30"}, "/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf", 30 * time.Second},
		"same name, first directory":  {map[string]string{"etc/systemd/logind.conf.d/a.conf": login + "1", "run/systemd/logind.conf.d/a.conf": login + "2", "usr/local/lib/systemd/logind.conf.d/a.conf": login + "3"}, "/etc/systemd/logind.conf.d/a.conf", time.Second},
		"an empty file masks":         {map[string]string{"etc/systemd/logind.conf.d/a.conf": "", "run/systemd/logind.conf.d/a.conf": login + "2"}, "", 5 * time.Second},
		"other endings are not read":  {map[string]string{"etc/systemd/logind.conf.d/a.conf.bak": login + "1", "etc/systemd/logind.conf.d/b": login + "2"}, "", 5 * time.Second},
		"the last line wins":          {map[string]string{"etc/systemd/logind.conf": login + "1\nInhibitDelayMaxSec=2\n"}, "/etc/systemd/logind.conf", 2 * time.Second},
		"a bad line does not":         {map[string]string{"etc/systemd/logind.conf": login + "1\nInhibitDelayMaxSec=soon\nInhibitDelayMaxSec=\n"}, "/etc/systemd/logind.conf", time.Second},
		"another section does not":    {map[string]string{"etc/systemd/logind.conf": "[Sleep]\nInhibitDelayMaxSec=9\n"}, "", 5 * time.Second},
		"a comment does not":          {map[string]string{"etc/systemd/logind.conf": "[Login]\n#InhibitDelayMaxSec=9\n;InhibitDelayMaxSec=9\n"}, "", 5 * time.Second},
		"a file that cannot be read":  {map[string]string{"etc/systemd/logind.conf.d/a.conf": login + "1\n", "etc/systemd/logind.conf.d/b.conf": "garbage"}, "/etc/systemd/logind.conf.d/a.conf", time.Second},
		"spaces around the equals":    {map[string]string{"etc/systemd/logind.conf": "[Login]\n InhibitDelayMaxSec = 1min 5s \n"}, "/etc/systemd/logind.conf", 65 * time.Second},
		"infinity":                    {map[string]string{"etc/systemd/logind.conf": login + "infinity"}, "/etc/systemd/logind.conf", unlimited},
		"a later one without setting": {map[string]string{"etc/systemd/logind.conf.d/a.conf": login + "1", "etc/systemd/logind.conf.d/b.conf": "[Login]\nKillUserProcesses=no\n"}, "/etc/systemd/logind.conf.d/a.conf", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			got := configured(fileSystem(test.files), nil)
			require.Equal(t, setting{file: test.file, delay: test.delay}, got)
		})
	}
}

// Without the drop-in in /etc, the file of the same name in /usr/lib counts, which the drop-in had masked.
func TestTheDropInIsIgnoredOnRequest(t *testing.T) {
	host := fileSystem(map[string]string{
		"etc/systemd/logind.conf.d/zz.conf":     "[Login]\nInhibitDelayMaxSec=60\n",
		"usr/lib/systemd/logind.conf.d/zz.conf": "[Login]\nInhibitDelayMaxSec=20\n",
	})
	got := configured(host, []string{"/etc/systemd/logind.conf.d/zz.conf"})
	require.Equal(t, setting{file: "/usr/lib/systemd/logind.conf.d/zz.conf", delay: 20 * time.Second}, got, "the masked file counts again")
}

// A fraction of a second must not be lost: the limit would be shorter than the requested delay. The
// longest duration becomes 9223372037 s, which logind accepts.
func TestTheDropInRoundsUpToSeconds(t *testing.T) {
	for wish, seconds := range map[time.Duration]string{
		0: "=0\n", 1: "=1\n", time.Second: "=1\n", time.Second + 1: "=2\n", 400 * time.Millisecond: "=1\n", unlimited: "=9223372037\n",
	} {
		text := string(dropInText(wish))
		require.True(t, strings.HasPrefix(text, ownedMark), "the drop-in is recognized")
		require.True(t, strings.HasSuffix(text, "[Login]\nInhibitDelayMaxSec"+seconds), text)
	}
}
