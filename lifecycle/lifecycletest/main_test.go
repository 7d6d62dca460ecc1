package lifecycletest_test

import (
	"testing"

	"k8s.io/klog/v2"
)

// TestMain keeps the lines of klog out of the output of the tests.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	m.Run()
}
