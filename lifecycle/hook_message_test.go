package lifecycle

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// hookFailureMessage builds its message without fmt. It must be the message that the kubelet's format string gives.
func FuzzHookFailed(f *testing.F) {
	f.Add("/bye", "server", "web", "shop", "42", "refused")
	f.Add("", "", "", "", "", "")
	for _, odd := range []string{`a"b`, `a\b`, "a\tb", "æ", "\x7f", "\xff"} {
		f.Add(odd, "server", "web", "shop", "42", odd)
		f.Add("/bye", odd, "web", "shop", "42", "%v")
		f.Add("/bye", "server", odd, "shop", "42", "")
		f.Add("/bye", "server", "web", odd, "42", "")
		f.Add("/bye", "server", "web", "shop", odd, "")
	}
	f.Fuzz(func(t *testing.T, action, container, name, namespace, uid, reason string) {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(uid)}}
		got := hookFailureMessage("HTTP", action, pod, &v1.Container{Name: container}, errors.New(reason))
		require.Equal(t, fmt.Sprintf("HTTP lifecycle hook (%s) for Container %q in Pod %q failed - error: %v",
			action, container, fmt.Sprintf("%s_%s(%s)", name, namespace, uid), reason), got)
	})
}
