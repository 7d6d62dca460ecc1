//go:build unix

package main

import (
	"os"
	"testing"

	"k8s.io/klog/v2"
)

// asProgram is the environment variable with which this test binary is the program.
const asProgram = "KUBEGRACE_TEST_VIRTUALKUBELET"

// TestMain runs the program if asProgram is set, as the function start does. Otherwise it silences klog and runs the tests.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	klog.SetLogger(klog.Logger{})
	m.Run()
}
