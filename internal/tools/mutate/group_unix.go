//go:build unix

package main

import (
	"os/exec"
	"strconv"
	"syscall"
)

// limited has a program started with an address space of at most memoryLimit.
func limited(cmd *exec.Cmd) {
	script := "ulimit -v " + strconv.Itoa(memoryLimit) + ` && exec "$0" "$@"`
	cmd.Args = append([]string{"sh", "-c", script, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

// group puts a program into a process group of its own, with all the processes that it
// starts, and has them killed together.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// killGroup kills what is left of the group of a program that has ended.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nothing is left: that is fine
	}
}
