package logindfake_test

import (
	"testing"

	"k8s.io/klog/v2"
)

// TestMain discards klog's output.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	m.Run()
}
