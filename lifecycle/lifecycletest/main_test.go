package lifecycletest_test

import (
	"testing"

	"k8s.io/klog/v2"
)

// TestMain keeps klog's lines out of the tests' output.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	m.Run()
}
