//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// setProcessGroup makes a command and the processes that it starts a process group of their own.
// When the context of the command ends, the whole group is interrupted.
func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}

// killProcessGroup kills what is left of the group of a command that has ended.
func killProcessGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if no process is left
	}
}
