package shutdowntest_test

import (
	"testing"

	"k8s.io/klog/v2"
)

// TestMain discards the output of klog.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	m.Run()
}
