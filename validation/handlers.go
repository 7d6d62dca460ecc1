package validation

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// hook checks that a hook has exactly one handler, and the fields of that handler. If there
// are several, it checks the first one in this order and rejects the others (the API server's
// validateHandler).
func (c *checker) hook(hook *v1.LifecycleHandler, at lazyPath) {
	count := 0 // of handlers so far
	if hook.Exec != nil && c.acceptHandler(&count, at, "exec") {
		c.exec(hook.Exec, at.child("exec"))
	}
	if hook.HTTPGet != nil && c.acceptHandler(&count, at, "httpGet") {
		c.httpGet(hook.HTTPGet, at.child("httpGet"))
	}
	if hook.TCPSocket != nil && c.acceptHandler(&count, at, fieldTCPSocket) {
		c.port(hook.TCPSocket.Port, at.child(fieldTCPSocket).child("port"))
	}
	if hook.Sleep != nil && c.acceptHandler(&count, at, fieldSleep) {
		c.sleep(hook.Sleep, at.child(fieldSleep))
	}
	if count == 0 {
		c.errs = append(c.errs, field.Required(at.fieldPath(), "must specify a handler type"))
	}
}

// acceptHandler increases the count of a hook's handlers, and accepts the first one. For any other
// it adds an error; the caller does not check the fields of that handler.
func (c *checker) acceptHandler(count *int, at lazyPath, name string) (isAccepted bool) {
	*count++
	if *count == 1 {
		return true
	}
	c.forbidden(at.child(name), "may not specify more than 1 handler type")
	return false
}

// exec checks that the command has at least one element, which may be empty
// (validateExecAction).
func (c *checker) exec(exec *v1.ExecAction, at lazyPath) {
	if len(exec.Command) == 0 {
		c.required(at.child("command"))
	}
}

// httpGet checks the path, port, scheme and header names of a request
// (validateHTTPGetAction). The host is not checked, because it is resolved when the hook runs.
// The errors of all headers have the same path, without an index.
func (c *checker) httpGet(get *v1.HTTPGetAction, at lazyPath) {
	if get.Path == "" {
		c.required(at.child("path"))
	}
	c.port(get.Port, at.child("port"))
	if get.Scheme != v1.URISchemeHTTP && get.Scheme != v1.URISchemeHTTPS {
		c.errs = append(c.errs, field.NotSupported(at.child("scheme").fieldPath(), get.Scheme, []v1.URIScheme{v1.URISchemeHTTP, v1.URISchemeHTTPS}))
	}
	for i := range get.HTTPHeaders {
		name := get.HTTPHeaders[i].Name
		for _, detail := range validation.IsHTTPHeaderName(name) {
			c.invalid(at.child("httpHeaders"), name, detail)
		}
	}
}

// port checks a port number or port name (ValidatePortNumOrName). A named port need not exist.
// A string of digits is not a valid name, although a kubelet accepts it as a number.
func (c *checker) port(port intstr.IntOrString, at lazyPath) {
	switch port.Type {
	case intstr.Int:
		for _, detail := range validation.IsValidPortNum(port.IntValue()) {
			c.invalid(at, port.IntValue(), detail)
		}
	case intstr.String:
		for _, detail := range validation.IsValidPortName(port.StrVal) {
			c.invalid(at, port.StrVal, detail)
		}
	default:
		c.errs = append(c.errs, field.InternalError(at.fieldPath(), fmt.Errorf("unknown type: %v", port.Type)))
	}
}
