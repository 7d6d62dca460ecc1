package agent_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/apiserver"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
)

// fakeAPIServer has one list of pods, for clients with its token. It is too old for lists by a watch. A watch gets no
// events, and ends when the server is retired.
type fakeAPIServer struct {
	*httptest.Server
	token   string
	pods    []v1.Pod
	retired chan struct{} // closed: the server no longer accepts its token
}

// newFakeAPIServer starts a server, which runs until the test ends or Close is called.
func newFakeAPIServer(t *testing.T, token string, pods ...v1.Pod) *fakeAPIServer {
	t.Helper()
	s := &fakeAPIServer{token: token, pods: pods, retired: make(chan struct{})}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP answers lists and watches.
func (s *fakeAPIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	isAuthorized := r.Header.Get("Authorization") == "Bearer "+s.token
	select {
	case <-s.retired:
		isAuthorized = false
	default:
	}
	query := r.URL.Query()
	isWatch := query.Get("watch") != ""
	switch {
	case !isAuthorized:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"reason":"Unauthorized","message":"Unauthorized"}`)
	case isWatch && query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"reason":"Invalid","message":"sendInitialEvents is forbidden"}`)
	case isWatch:
		w.(http.Flusher).Flush()
		select {
		case <-s.retired:
		case <-r.Context().Done():
		}
	default:
		list := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: s.pods}
		_ = json.NewEncoder(w).Encode(list) // if this fails, the client's request fails
	}
}

// writeKubeconfig writes a kubeconfig whose credentials are in the file itself.
func (s *fakeAPIServer) writeKubeconfig(t *testing.T, file string) {
	t.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+s.URL+`", certificate-authority-data: "`+base64.StdEncoding.EncodeToString(authority)+`"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: "`+s.token+`"}}]
current-context: c
`), 0o600))
}

// The agent has the pods of an API server. Then the server no longer accepts the agent's credentials, or is gone. The
// agent's status must say that the API server is missing, and the agent must still know all pods. The kubeconfig is
// replaced: it has the address and the credentials of another server, whose pods the agent must get without a restart. The
// two servers give the pod the priorities 7 and 8.
func TestAReplacedKubeconfigIsLoaded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*fakeAPIServer){
		"the credentials are revoked": func(s *fakeAPIServer) { close(s.retired) },
		"the server is gone": func(s *fakeAPIServer) {
			s.CloseClientConnections()
			s.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info, err := podinfo.New("", nil)
			require.NoError(t, err)
			b := newTestbed(t, podOf("web", 0, ""))
			file := filepath.Join(t.TempDir(), "kubeconfig")
			b.opts.Info, b.opts.NodeName, b.opts.APIServer = info, "node", apiserver.New(file, "node", b.opts.Gates)
			await := func(condition func() bool) {
				t.Helper()
				require.Eventually(t, condition, 20*time.Second, 10*time.Millisecond)
			}
			// isMissing and isThere report what the agent's last status says about the API server.
			isMissing := func() bool {
				return len(b.notifications()) > 0 && strings.Contains(b.status(), "missing: API server")
			}
			isThere := func() bool {
				return len(b.notifications()) > 0 && !strings.Contains(b.status(), "missing: API server")
			}
			first, second := newFakeAPIServer(t, "first", *podOf("web", 7, "")), newFakeAPIServer(t, "second", *podOf("web", 8, ""))
			// awaitPriority waits until the agent has the priority from a server.
			awaitPriority := func(priority int32) {
				t.Helper()
				await(func() bool { return *info.Enrich(podOf("web", 0, "")).Spec.Priority == priority })
			}

			// The agent has the pods of the first server.
			first.writeKubeconfig(t, file)
			b.start()
			awaitPriority(7)
			await(isThere)
			info.ForgetAllBut(nil) // as if the runtime did not have the pod yet

			// The first server ends, and the kubeconfig is replaced.
			end(first)
			await(isMissing)
			awaitPriority(7)
			second.writeKubeconfig(t, file)
			awaitPriority(8)
			await(isThere)
			b.endBySIGTERM()
		})
	}
}
