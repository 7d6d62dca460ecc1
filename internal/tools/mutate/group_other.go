//go:build !unix

package main

import "os/exec"

// limitMemory does nothing: address spaces are limited on Unix only.
func limitMemory(*exec.Cmd) {}

// setProcessGroup does nothing: only the program itself is killed when its context ends.
func setProcessGroup(*exec.Cmd) {}

// killProcessGroup does nothing: there is no group.
func killProcessGroup(*exec.Cmd) {}
