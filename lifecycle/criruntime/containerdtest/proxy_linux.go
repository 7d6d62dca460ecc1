package containerdtest

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// Proxy serves containerd's CRI on a second socket until the end of the test, and returns
// its endpoint. It answers Unavailable to the refused methods, which are full names such
// as "/runtime.v1.RuntimeService/ListContainers". So a test can show what a client does
// without a method that containerd has.
func (s *Server) Proxy(t testing.TB, refused ...string) string {
	t.Helper()
	conn, err := grpc.NewClient(s.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(verbatim{})))
	require.NoError(t, err)
	socket := filepath.Join(s.folder, "proxy.sock")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)

	p := proxy{conn: conn, refused: map[string]bool{}}
	for _, method := range refused {
		p.refused[method] = true
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(p.forward), grpc.ForceServerCodecV2(verbatim{}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
		require.NoError(t, conn.Close())
	})
	return "unix://" + socket
}

// proxy forwards calls with one request and any number of answers. All methods of CRI are
// of this kind.
type proxy struct {
	conn    *grpc.ClientConn
	refused map[string]bool
}

// forward handles all methods: it forwards the request to the runtime, and then the
// answers to the caller, until the runtime ends the call.
func (p proxy) forward(_ any, caller grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(caller)
	if p.refused[method] {
		return status.Errorf(codes.Unavailable, "the proxy refuses %s", method)
	}
	ctx, cancel := context.WithCancel(caller.Context())
	defer cancel()
	runtime, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	var message mem.BufferSlice
	if err := caller.RecvMsg(&message); err != nil {
		return err
	}
	if err := errors.Join(runtime.SendMsg(&message), runtime.CloseSend()); err != nil {
		return err
	}
	for {
		if err := runtime.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := caller.SendMsg(&message); err != nil {
			return err
		}
	}
}

// verbatim is a codec that does not decode messages. A message is a *mem.BufferSlice with
// the bytes from the wire.
type verbatim struct{}

func (verbatim) Name() string { return "proto" }

func (verbatim) Marshal(message any) (mem.BufferSlice, error) {
	return *message.(*mem.BufferSlice), nil
}

func (verbatim) Unmarshal(data mem.BufferSlice, message any) error {
	data.Ref() // gRPC drops its reference when Unmarshal returns
	*message.(*mem.BufferSlice) = data
	return nil
}
