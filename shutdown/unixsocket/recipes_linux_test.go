package unixsocket_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/source"
	"github.com/kubegrace/kubegrace/shutdown/unixsocket"
)

// TestMain makes the test binary the socat that the README's scripts call, and discards klog's output.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	if filepath.Base(os.Args[0]) != "socat" {
		m.Run()
		return
	}
	if err := socat(os.Args[1:]); err != nil {
		panic(err)
	}
}

// socat works like "socat -t SECONDS - UNIX-CONNECT:PATH": it ends SECONDS after its input, or with the
// connection.
func socat(args []string) error {
	path, isPath := strings.CutPrefix(args[len(args)-1], "UNIX-CONNECT:")
	if len(args) != 4 || args[0] != "-t" || args[2] != "-" || !isPath {
		return fmt.Errorf("socat does not know %q", args)
	}
	wait, err := time.ParseDuration(args[1] + "s")
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	if _, err := io.Copy(conn, os.Stdin); err != nil {
		return err
	}
	err = errors.Join(conn.(*net.UnixConn).CloseWrite(), conn.SetReadDeadline(time.Now().Add(wait)))
	if err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, conn)
	return err
}

// recipes are the files of the README in a temporary folder, with the paths of that folder.
type recipes struct {
	t   *testing.T
	dir string   // the folder
	env []string // the environment of the commands, which find the folder's programs
}

// writeRecipes writes the files of the README. The programs poweroff and s6-rc, which the files call, only append their
// names to the file "called".
func writeRecipes(t *testing.T) *recipes {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "recipes") // a socket's path must be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	moved := strings.NewReplacer("/run/agent/", dir+"/run/", "/run/runit/", dir+"/run/", "/usr/local/sbin/", dir+"/sbin/", "/sbin/poweroff", dir+"/sbin/poweroff")
	blocks := regexp.MustCompile("(?m)^`(/.+)`\n\n```(?:sh|conf)\n((?s:.+?))```$").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 8, "the README's files")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sbin"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "run"), 0o700))
	for _, block := range blocks {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "sbin", filepath.Base(block[1])), []byte(moved.Replace(block[2])), 0o700))
	}
	for _, name := range []string{"poweroff", "s6-rc"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "sbin", name), []byte("#!/bin/sh\necho "+name+" >> "+dir+"/called\n"), 0o700))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "sbin", "socat")))
	return &recipes{t: t, dir: dir, env: append(os.Environ(), "PATH="+dir+"/sbin:"+os.Getenv("PATH"))}
}

// run runs a command with a shell. %s in the command stands for the folder of the scripts.
func (r *recipes) run(shell, command string) (output string, err error) {
	words := append(strings.Fields(shell), "-c", strings.ReplaceAll(command, "%s", r.dir+"/sbin"))
	cmd := exec.CommandContext(r.t.Context(), words[0], words[1:]...)
	cmd.Env, cmd.WaitDelay = r.env, 10*time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// start starts a command, as run does. The channel gets the command's error when it has ended.
func (r *recipes) start(shell, command string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := r.run(shell, command)
		ended <- err
	}()
	return ended
}

// called returns the programs, poweroff or s6-rc, that the scripts have called since the last call.
func (r *recipes) called() string {
	text, err := os.ReadFile(r.dir + "/called")
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	require.NoError(r.t, err)
	require.NoError(r.t, os.Remove(r.dir+"/called"))
	return strings.TrimSpace(string(text))
}

// shells returns the shells of this machine that can run scripts for sh.
func shells(t *testing.T) (found []string) {
	t.Helper()
	for _, shell := range []string{"sh", "bash --posix", "busybox sh"} {
		if _, err := exec.LookPath(strings.Fields(shell)[0]); err == nil {
			found = append(found, shell)
		}
	}
	require.NotEmpty(t, found)
	return found
}

// commands returns the commands with which init systems and UPS daemons run the README's files. The key of a command begins
// with the kind that the agent must receive. called is the program that the script runs at last; "": none.
func commands(t *testing.T, r *recipes) map[string]struct{ command, called string } {
	t.Helper()
	conf, err := os.ReadFile(r.dir + "/sbin/upsmon.conf")
	require.NoError(t, err)
	nut := regexp.MustCompile(`SHUTDOWNCMD "(.+)"`).FindSubmatch(conf)
	require.NotNil(t, nut)
	openRC := `ebegin() { :; }; eend() { return "$1"; }; need() { :; }; . %s/kubegrace-hold; depend; start; `
	return map[string]struct{ command, called string }{
		"poweroff by runit":   {". %s/05-kubegrace.sh; echo on", ""},
		"shutdown by OpenRC":  {openRC + "RC_RUNLEVEL=shutdown; stop", ""},
		"shutdown by s6":      {"%s/rc.shutdown", "s6-rc"},
		"poweroff by NUT":     {string(nut[1]), "poweroff"},
		"poweroff by apcupsd": {"%s/doshutdown onbattery ups 1 1", ""},
	}
}

// Each script announces a shutdown in 60 or 90 s and waits until the agent releases its lock, as after a drain. Only
// then may the script call poweroff or s6-rc.
func TestRecipesWaitForTheDrain(t *testing.T) {
	for _, shell := range shells(t) {
		r := writeRecipes(t)
		for name, c := range commands(t, r) {
			t.Run(shell+"/"+name, func(t *testing.T) {
				session, lock := r.agent(t)
				ended := r.start(shell, c.command)
				event := <-session.Events()
				kind, _, _ := strings.Cut(name, " ")
				require.Equal(t, source.Kind(strings.TrimPrefix(kind, "shutdown")), event.Kind) // "shutdown": KindUnknown, which is ""
				require.WithinRange(t, event.Deadline, time.Now().Add(50*time.Second), time.Now().Add(90*time.Second))
				require.Empty(t, ended, "it waits")
				require.Empty(t, r.called(), "nothing is called before the reply")

				require.NoError(t, lock.Close())
				require.NoError(t, <-ended)
				require.Equal(t, c.called, r.called())
			})
		}
	}
}

// agent returns the session of an agent, which ends with the test, and the agent's lock, which the caller closes.
func (r *recipes) agent(t *testing.T) (source.Session, io.Closer) {
	t.Helper()
	s, err := unixsocket.New(unixsocket.Options{Path: r.dir + "/run/shutdown.sock"})
	require.NoError(t, err)
	session, err := s.Connect(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	lock, err := session.Inhibit(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	return session, lock
}

// No agent is running, or a dead one has left its socket. Each script must end without an error, and call the program that
// brings the machine down, if it calls one.
func TestRecipesDoNotWaitWithoutAnAgent(t *testing.T) {
	for _, shell := range shells(t) {
		r := writeRecipes(t)
		for _, hasDeadSocket := range []bool{false, true} {
			if hasDeadSocket {
				listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: r.dir + "/run/shutdown.sock", Net: "unix"})
				require.NoError(t, err)
				listener.SetUnlinkOnClose(false)
				require.NoError(t, listener.Close())
			}
			for name, c := range commands(t, r) {
				out, err := r.run(shell, c.command)
				require.NoError(t, err, "%s %s: %s", shell, name, out)
				require.Equal(t, c.called, r.called())
			}
		}
	}
}

// Somebody stops the service of OpenRC by hand: the runlevel is default, and not shutdown. The script announces no shutdown.
func TestStoppingTheServiceAnnouncesNothing(t *testing.T) {
	r := writeRecipes(t)
	session, lock := r.agent(t)
	_, err := r.run("sh", `RC_RUNLEVEL=default; . %s/kubegrace-hold; stop`)
	require.NoError(t, err)
	require.Empty(t, session.Events())
	require.NoError(t, lock.Close())
}

// The script for upssched announces a power off in 600 s and returns at once. Another call of the script cancels the
// shutdown.
func TestTheRecipeForUpssched(t *testing.T) {
	r := writeRecipes(t)
	session, lock := r.agent(t)
	_, err := r.run("sh", "%s/kubegrace-upssched drain > /dev/null 2>&1")
	require.NoError(t, err, "the script has returned, although the lock is held")
	event := <-session.Events()
	require.Equal(t, source.KindPoweroff, event.Kind)
	require.WithinRange(t, event.Deadline, time.Now().Add(9*time.Minute), time.Now().Add(10*time.Minute))
	ended := r.start("sh", "%s/kubegrace-upssched back")
	require.True(t, (<-session.Events()).Cancelled)
	require.NoError(t, <-ended)
	require.NoError(t, lock.Close())
}

// The script for runit announces a reboot, and not a power off, if runit's file "reboot" exists.
func TestTheRecipeForRunitAnnouncesAReboot(t *testing.T) {
	r := writeRecipes(t)
	session, lock := r.agent(t)
	require.NoError(t, os.WriteFile(r.dir+"/run/reboot", nil, 0o700))
	ended := r.start("sh", ". %s/05-kubegrace.sh")
	require.Equal(t, source.KindReboot, (<-session.Events()).Kind)
	require.NoError(t, lock.Close())
	require.NoError(t, <-ended)
}
