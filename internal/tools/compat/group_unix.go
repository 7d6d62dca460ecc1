//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// group puts a command into a process group of its own, with all the processes that it
// starts, and has them interrupted together.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}

// killGroup kills what is left of the group of a command that has ended.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nothing is left: that is fine
	}
}
