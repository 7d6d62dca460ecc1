//go:build !unix

package main

import "os/exec"

// limited does nothing: address spaces are limited on Unix only.
func limited(*exec.Cmd) {}

// group leaves a program as it is: it alone is killed when its context ends.
func group(*exec.Cmd) {}

// killGroup does nothing: there is no group.
func killGroup(*exec.Cmd) {}
