//go:build unix

package main

import (
	"os/exec"
	"strconv"
	"syscall"
)

// limitMemory makes a program start with an address space of at most memoryLimit.
func limitMemory(cmd *exec.Cmd) {
	script := "ulimit -v " + strconv.Itoa(memoryLimit) + ` && exec "$0" "$@"`
	cmd.Args = append([]string{"sh", "-c", script, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

// setProcessGroup makes a program and the processes that it starts a process group of their own.
// When the context of the program ends, the whole group is killed.
func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// killProcessGroup kills what is left of the group of a program that has ended.
func killProcessGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if no process is left
	}
}
