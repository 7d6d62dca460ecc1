package containerdtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/internal/need"
)

const (
	startTimeout   = 60 * time.Second // of containerd and its images
	cleanUpTimeout = 60 * time.Second // of the pods that a test leaves
)

// DownTime is how long a containerd stays away that was ended by [Server.Kill].
const DownTime = 2 * time.Second

// Server is a containerd that belongs to one test.
type Server struct {
	folder  string
	ctr     string
	shell   int             // the process that containerd runs under
	alive   context.Context // ends when that process does
	runtime runtimeapi.RuntimeServiceClient
	exits   exits
}

// Start runs the containerd of the Debian package, with the images, until the end of the
// test.
func Start(t testing.TB, images ...Image) *Server {
	t.Helper()
	return Build{}.Start(t, images...)
}

// Start runs the containerd of the build, with the images, until the end of the test.
func (b Build) Start(t testing.TB, images ...Image) *Server {
	t.Helper()
	need.Root(t)
	containerd := need.Program(t, filepath.Join(b.folder, "containerd"), "containerd")
	need.Program(t, "runc", "runc")
	busybox := need.Program(t, "busybox", "busybox-static")
	folder, err := os.MkdirTemp("", "containerd") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })

	s := &Server{folder: folder, ctr: need.Program(t, "ctr", "containerd")}
	s.run(t, containerd, b.environment())
	s.connect(t)
	s.load(t, busybox, append(images, pause()))
	s.recordExits(t)
	return s
}

// Socket is the path of containerd's socket.
func (s *Server) Socket() string { return socketIn(s.folder) }

// Endpoint is the socket as the kubelet's --container-runtime-endpoint has it.
func (s *Server) Endpoint() string { return "unix://" + s.Socket() }

// Runtime is a plain client of the server, for what a test wants to see for itself.
func (s *Server) Runtime() runtimeapi.RuntimeServiceClient { return s.runtime }

// run starts containerd in its own namespace of processes, under a shell that is the
// first process there: when that ends, the kernel ends all shims and containers, and
// when it has been waited for, they are gone. The shell starts a containerd again that
// was killed, [DownTime] later, and ends with one that ends in any other way. /run is its
// own too, because shims have their sockets there.
func (s *Server) run(t testing.TB, containerd string, environment []string) {
	t.Helper()
	config := filepath.Join(s.folder, "config.toml")
	require.NoError(t, os.WriteFile(config, []byte(configOfServer(s.folder)), 0o600))
	const script = `mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs tmpfs /run &&
		while :; do "$0" "$@"; [ $? = 137 ] || exit; sleep "$DOWN_TIME"; done`
	process := exec.Command("/bin/sh", "-c", script, containerd, "--config", config)
	process.Env = append(environment, fmt.Sprintf("DOWN_TIME=%v", DownTime.Seconds()))
	process.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	log, err := os.Create(s.log())
	require.NoError(t, err)
	process.Stdout, process.Stderr = log, log
	require.NoError(t, process.Start())
	require.NoError(t, log.Close())

	s.shell = process.Process.Pid
	alive, died := context.WithCancel(t.Context())
	s.alive = alive
	var waiting sync.WaitGroup
	waiting.Go(func() {
		_ = process.Wait() // it is killed in the end: its status says nothing
		died()
	})
	t.Cleanup(func() {
		_ = process.Process.Kill() // it may have ended by itself
		waiting.Wait()
	})
}

// Kill ends containerd with SIGKILL. Its shims and containers live on, and [DownTime]
// later it is started again.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", s.shell, s.shell))
	require.NoError(t, err)
	killed := false
	for child := range strings.FieldsSeq(string(children)) {
		name, err := os.ReadFile(filepath.Join("/proc", child, "comm"))
		require.NoError(t, err)
		if strings.TrimSpace(string(name)) != "containerd" {
			continue // a shim that has lost its parent
		}
		pid, err := strconv.Atoi(child)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		killed = true
	}
	require.True(t, killed, "there is no containerd to kill")
}

// log is where containerd writes.
func (s *Server) log() string { return filepath.Join(s.folder, "log") }

// connect waits until containerd answers, or has ended.
func (s *Server) connect(t testing.TB) {
	t.Helper()
	conn, err := grpc.NewClient(s.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	s.runtime = runtimeapi.NewRuntimeServiceClient(conn)

	ctx, cancel := context.WithTimeout(s.alive, startTimeout)
	defer cancel()
	if _, err := s.runtime.Version(ctx, &runtimeapi.VersionRequest{}); err != nil {
		log, _ := os.ReadFile(s.log()) // without it, err is all there is to say
		require.NoErrorf(t, err, "containerd does not answer; it said:\n%s", log)
	}
	t.Cleanup(func() { require.NoError(t, s.removePods(context.WithoutCancel(t.Context()))) })
}

// load makes the images and gives them to containerd.
func (s *Server) load(t testing.TB, busybox string, images []Image) {
	t.Helper()
	content, err := archive(busybox, images)
	require.NoError(t, err)
	file := filepath.Join(s.folder, "images.tar")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	ctx, cancel := context.WithTimeout(s.alive, startTimeout)
	defer cancel()
	out, err := s.command(ctx, "images", "import", "--snapshotter", "native", file).CombinedOutput()
	require.NoErrorf(t, err, "failed to load images: %s", out)
}

// command is a call of ctr, containerd's own client, in the namespace of CRI.
func (s *Server) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, s.ctr, append([]string{"--address", s.Socket(), "--namespace", "k8s.io"}, args...)...)
}

// removePods leaves nothing for the kernel to clean up, cgroups above all, which do
// not go away with the namespaces.
func (s *Server) removePods(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanUpTimeout)
	defer cancel()
	list, err := s.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("failed to list the pods that are left: %w", err)
	}
	for _, pod := range list.GetItems() {
		if _, err := s.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod.GetId()}); err != nil {
			return fmt.Errorf("failed to stop pod %q that is left: %w", pod.GetMetadata().GetName(), err)
		}
		if _, err := s.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod.GetId()}); err != nil {
			return fmt.Errorf("failed to remove pod %q that is left: %w", pod.GetMetadata().GetName(), err)
		}
	}
	return nil
}
