package podinfo_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nobodytest"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/internal/need"
)

// closing is the path at which [servePods] closes the connection together with its answer.
const closing = "/closing"

// servePods serves a list of pods, as the read-only port of a kubelet does.
func servePods(w http.ResponseWriter, r *http.Request) {
	list, err := json.Marshal(v1.PodList{Items: []v1.Pod{told()}})
	if err == nil && r.URL.Path == closing {
		err = answerAndClose(w, list)
	} else if err == nil {
		_, err = w.Write(list)
	}
	if err != nil {
		panic(err) // the client sees a failure
	}
}

// answerAndClose sends an answer and closes the connection in one step: TCP_CORK delays the answer until
// the close sends it. When the client gets the answer, no process has the server's socket any more.
func answerAndClose(w http.ResponseWriter, answer []byte) error {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	var errCork error
	err = raw.Control(func(fd uintptr) { errCork = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CORK, 1) })
	_, errWrite := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
	return errors.Join(err, errCork, errWrite, conn.Close())
}

// Any user can listen on the read-only port while the kubelet is stopped, and must not be able to give false
// priorities. A server of this test, which runs as root, is believed, also on a connection that is used again.
// A server of the user nobody (65534) is not, even if it closes its socket before the client can look who owns
// it.
func TestOnlyRootIsBelievedOverHTTP(t *testing.T) {
	need.Root(t)
	for name, address := range map[string]string{"loopback": "127.0.0.1:0", "all addresses": ":0"} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", address)
			require.NoError(t, err)
			server := &http.Server{Handler: http.HandlerFunc(servePods)} //nolint:gosec // only this test asks it
			go server.Serve(listener)                                    //nolint:errcheck // until it is closed
			defer server.Close()                                         //nolint:errcheck // the same
			_, port, err := net.SplitHostPort(listener.Addr().String())
			require.NoError(t, err)
			for range 2 { // the second time on the same connection
				pods, err := podinfo.KubeletPods(t.Context(), "http://127.0.0.1:"+port+"/pods", &rest.Config{})
				require.NoError(t, err)
				require.Equal(t, "web", pods[0].Name)
			}
		})
	}

	command := nobodytest.Command(t, nobodytest.Program(t), "TestServerOfNobody")
	command.Env = append(os.Environ(), serverOfNobody+"=1")
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	defer func() {
		require.NoError(t, command.Process.Kill())
		_ = command.Wait() // killed
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	address = strings.TrimSpace(address)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	for range 2 {
		pods, err := podinfo.KubeletPods(t.Context(), "http://"+address+"/pods", &rest.Config{})
		require.EqualError(t, err, "user 65534, not root, answers on port "+port+": this is not the kubelet, and its list of pods is not used")
		require.Empty(t, pods)
	}
	for range 20 { // many times, because it is a race: the kernel's table shows a closed socket as root's
		_, err := podinfo.KubeletPods(t.Context(), "http://"+address+closing, &rest.Config{})
		require.ErrorContains(t, err, "its list of pods is not used")
	}
}

// serverOfNobody is the environment variable by which [TestServerOfNobody] knows that it is the process of
// nobody.
const serverOfNobody = "KUBEGRACE_SERVER_OF_NOBODY"

// TestServerOfNobody is no test. [TestOnlyRootIsBelievedOverHTTP] runs it in a process of the user nobody,
// where it prints its address and serves a list of pods until it is killed.
func TestServerOfNobody(t *testing.T) {
	if os.Getenv(serverOfNobody) == "" {
		return // it is not that process
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	fmt.Println(listener.Addr())
	require.NoError(t, http.Serve(listener, http.HandlerFunc(servePods))) //nolint:gosec // until it is killed
}
