//go:build !unix

package main

import "os/exec"

// group leaves a command as it is: it alone is killed when its context ends.
func group(*exec.Cmd) {}

// killGroup does nothing: there is no group.
func killGroup(*exec.Cmd) {}
