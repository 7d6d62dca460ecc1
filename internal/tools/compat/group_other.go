//go:build !unix

package main

import "os/exec"

// setProcessGroup does nothing: only the command itself is killed when its context ends.
func setProcessGroup(*exec.Cmd) {}

// killProcessGroup does nothing: there is no group.
func killProcessGroup(*exec.Cmd) {}
