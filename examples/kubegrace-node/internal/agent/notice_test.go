package agent_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/notice"
)

// A fake metadata service of EC2 says that the machine will be terminated in two minutes, while the host
// itself announces nothing. The agent must drain the node.
func TestNoticeOfACloud(t *testing.T) {
	ends := time.Now().Add(2 * time.Minute).UTC().Format(time.RFC3339)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut:
			_, _ = fmt.Fprint(w, "token") // a failed write fails the client's request
		case strings.HasSuffix(r.URL.Path, "/spot/instance-action"):
			_, _ = fmt.Fprintf(w, `{"action": "terminate", "time": %q}`, ends)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer service.Close()
	b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 10ms}"))
	provider := notice.EC2()
	provider.Endpoint = service.URL
	b.opts.Notice = &provider
	b.start()
	require.Eventually(t, func() bool { return strings.Contains(b.output(), "  stopped in time\n") }, 20*time.Second, 10*time.Millisecond)
	b.signals <- syscall.SIGTERM
	require.NoError(t, <-b.result)
}
