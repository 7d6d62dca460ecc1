package validation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const hookPath = "spec.containers[0].lifecycle.preStop"

// A hook with one handler of any kind, with valid fields, has no error. A tcpSocket hook is valid, although no kubelet
// runs it, and the command of an exec hook may be an empty word.
func TestValidHooks(t *testing.T) {
	for name, hook := range map[string]*v1.LifecycleHandler{
		"exec":             exec("sh", "-c", "exit 0"),
		"httpGet, number":  httpGet("/bye", intstr.FromInt32(8080), v1.URISchemeHTTP),
		"httpGet, name":    httpGet("/bye", intstr.FromString("web"), v1.URISchemeHTTPS, v1.HTTPHeader{Name: "X-Why", Value: "leaving"}),
		"tcpSocket":        {TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(1)}},
		"sleep":            sleep(30),
		"exec, empty word": exec(""),
	} {
		require.Nil(t, validate(spec(withHook(hook))), name)
	}
}

// A hook without a handler has one error. A hook with all four kinds of handler has three: one for each handler after the
// first, which is the exec. The other mistakes of these three, such as a sleep of -1 s, are not checked.
func TestHooksWithoutExactlyOneHandler(t *testing.T) {
	requireErrors(t, validate(spec(withHook(&v1.LifecycleHandler{}))),
		hookPath+": Required value: must specify a handler type")

	all := &v1.LifecycleHandler{
		Exec:      &v1.ExecAction{Command: []string{"true"}},
		HTTPGet:   &v1.HTTPGetAction{}, // not checked, because it is not the first handler
		TCPSocket: &v1.TCPSocketAction{},
		Sleep:     &v1.SleepAction{Seconds: -1},
	}
	requireErrors(t, validate(spec(withHook(all))),
		hookPath+".httpGet: Forbidden: may not specify more than 1 handler type",
		hookPath+".tcpSocket: Forbidden: may not specify more than 1 handler type",
		hookPath+".sleep: Forbidden: may not specify more than 1 handler type")
}

// Of several handlers only the first one is checked, in the API server's order: exec, httpGet, tcpSocket, sleep. Here it is
// an exec without a command, and then a tcpSocket without a port. The sleep has an error only because it is a second handler.
func TestOnlyTheFirstHandlerIsChecked(t *testing.T) {
	requireErrors(t, validate(spec(withHook(&v1.LifecycleHandler{
		Exec: &v1.ExecAction{}, Sleep: &v1.SleepAction{Seconds: 1},
	}))),
		hookPath+".exec.command: Required value",
		hookPath+".sleep: Forbidden: may not specify more than 1 handler type")
	requireErrors(t, validate(spec(withHook(&v1.LifecycleHandler{
		TCPSocket: &v1.TCPSocketAction{}, Sleep: &v1.SleepAction{Seconds: 1},
	}))),
		hookPath+".tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive",
		hookPath+".sleep: Forbidden: may not specify more than 1 handler type")
}

// Each invalid field of an httpGet hook has its own error, with the API server's text.
func TestInvalidHTTPHooks(t *testing.T) {
	requireErrors(t, validate(spec(withHook(httpGet("", intstr.FromInt32(65536), "", v1.HTTPHeader{Name: "a b"}, v1.HTTPHeader{Name: "ok"})))),
		hookPath+".httpGet.path: Required value",
		hookPath+".httpGet.port: Invalid value: 65536: must be between 1 and 65535, inclusive",
		hookPath+`.httpGet.scheme: Unsupported value: "": supported values: "HTTP", "HTTPS"`,
		hookPath+`.httpGet.httpHeaders: Invalid value: "a b": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')`)
	requireErrors(t, validate(spec(withHook(httpGet("/", intstr.FromString("1"), "http")))),
		hookPath+`.httpGet.port: Invalid value: "1": must contain at least one letter (a-z)`,
		hookPath+`.httpGet.scheme: Unsupported value: "http": supported values: "HTTP", "HTTPS"`)
	requireErrors(t, validate(spec(withHook(httpGet("/", intstr.IntOrString{Type: 7}, v1.URISchemeHTTP)))),
		hookPath+".httpGet.port: Internal error: unknown type: 7")
}

// Both hooks of a container are checked, postStart first, as in the API server. Here postStart has no handler, and preStop is
// an exec without a command.
func TestPostStartIsCheckedLikePreStop(t *testing.T) {
	both := v1.Container{Lifecycle: &v1.Lifecycle{PostStart: &v1.LifecycleHandler{}, PreStop: exec()}}
	requireErrors(t, validate(spec(withContainer(both))),
		"spec.containers[0].lifecycle.postStart: Required value: must specify a handler type",
		"spec.containers[0].lifecycle.preStop.exec.command: Required value")
}
