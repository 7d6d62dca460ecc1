//go:build linux

package logindfake

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/godbus/dbus/v5"
)

// peer is a connection to a [Broker], seen from the broker's side.
type peer struct {
	socket  *net.UnixConn
	missing map[Lack]bool
	name    string // the unique name; "": no Hello yet

	mu    sync.Mutex          // guards rules
	rules []map[string]string // the match rules of its AddMatch calls, as keys and values
}

// authenticate does the bus's part of the handshake: it answers each line of the client. It returns nil after BEGIN.
// Every user is accepted. With LackOtherHandshakes a line that the kubelet would not send at this step is an error.
func (p *peer) authenticate() error {
	kubeletLines := []string{"\x00AUTH", "AUTH EXTERNAL", "NEGOTIATE_UNIX_FD", "BEGIN"}
	for step := 0; ; step++ {
		line, err := p.readLine()
		if err != nil {
			return err
		}
		if p.missing[LackOtherHandshakes] {
			want := kubeletLines[step]
			hasUserID := want == "AUTH EXTERNAL" && strings.HasPrefix(line, want)
			if line != want && !hasUserID {
				return fmt.Errorf("%q instead of %q", line, want)
			}
		}
		line = strings.TrimPrefix(line, "\x00")
		if line == "BEGIN" {
			return nil
		}
		if _, err := p.socket.Write([]byte(p.answer(line))); err != nil {
			return err
		}
	}
}

// answer returns the bus's answer to a line of the handshake; "": it does not answer.
func (p *peer) answer(line string) string {
	switch {
	case line == "AUTH":
		return "REJECTED EXTERNAL\r\n"
	case strings.HasPrefix(line, "AUTH EXTERNAL"):
		return "OK 0123456789abcdef0123456789abcdef\r\n"
	case line == "NEGOTIATE_UNIX_FD" && p.missing[LackAnswer]:
		return ""
	case line == "NEGOTIATE_UNIX_FD" && !p.missing[LackAgreement]:
		return "AGREE_UNIX_FD\r\n"
	default:
		return "ERROR\r\n"
	}
}

// readLine reads one line of the handshake, and nothing after it.
func (p *peer) readLine() (string, error) {
	var line []byte
	for one := make([]byte, 1); !bytes.HasSuffix(line, []byte("\r\n")); line = append(line, one...) {
		if _, err := io.ReadFull(p.socket, one); err != nil {
			return "", err
		}
	}
	return string(bytes.TrimSuffix(line, []byte("\r\n"))), nil
}

// messageStart is the size of what each D-Bus message begins with. Byte 0 says the byte order, bytes 4 to 7 are the length of the
// body, and bytes 12 to 15 are that of the header fields.
const messageStart = 16

// receive reads one message with its descriptors.
func (p *peer) receive() (*packet, error) {
	received := &packet{order: binary.LittleEndian}
	read := func(size uint32) ([]byte, error) {
		part, rights := make([]byte, size), make([]byte, 2048)
		for rest := part; len(rest) > 0; {
			n, oob, _, _, err := p.socket.ReadMsgUnix(rest, rights)
			if err != nil {
				return nil, err
			}
			received.descriptors = append(received.descriptors, descriptorsOf(rights[:oob])...)
			rest = rest[n:]
		}
		return part, nil
	}
	start, err := read(messageStart)
	var fields []byte
	if err == nil {
		if start[0] == 'B' {
			received.order = binary.BigEndian
		}
		size := received.order.Uint32(start[12:])
		fields, err = read((size + 7) / 8 * 8) // the fields are padded to a multiple of 8
	}
	if err == nil {
		received.body, err = read(received.order.Uint32(start[4:]))
	}
	if err == nil {
		received.Message, err = dbus.DecodeMessage(bytes.NewReader(slices.Concat(start, fields, received.body)))
	}
	if err != nil {
		received.closeDescriptors()
		return nil, err
	}
	return received, nil
}

// send sends a message. After an error it closes the connection, so that serve, which reads from it, ends.
func (p *peer) send(sent *packet) {
	var rights []byte
	if len(sent.descriptors) > 0 {
		rights = syscall.UnixRights(sent.descriptors...)
	}
	encoded, err := sent.encode(p.missing)
	if err == nil {
		_, _, err = p.socket.WriteMsgUnix(encoded, rights, nil)
	}
	if err != nil {
		_ = p.socket.Close() // it may be closed already
	}
}

// reply answers a call with values, in the name of the bus.
func (p *peer) reply(call *dbus.Message, values ...any) {
	p.send(&packet{Message: answerTo(call, dbus.TypeMethodReply, driver, values), order: binary.LittleEndian})
}

// refuse answers a call with a standard D-Bus error.
func (p *peer) refuse(call *dbus.Message, name string) {
	message := answerTo(call, dbus.TypeError, driver, []any{member(call) + ": " + name})
	message.Headers[dbus.FieldErrorName] = dbus.MakeVariant(driver + ".Error." + name)
	p.send(&packet{Message: message, order: binary.LittleEndian})
}

// addRule adds a match rule: the connection receives the broadcast signals that match one of its rules.
func (p *peer) addRule(rule string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, parseRule(rule))
}

// hasRuleFor reports whether a match rule of the connection matches a signal. A rule may name its sender by a
// well-known name; owner returns the connection that owns a name.
func (p *peer) hasRuleFor(signal *dbus.Message, owner func(string) *peer) bool {
	p.mu.Lock()
	rules := p.rules
	p.mu.Unlock()
	values := map[string]string{"type": "signal", "member": member(signal)}
	values["interface"], _ = signal.Headers[dbus.FieldInterface].Value().(string)
	values["sender"], _ = signal.Headers[dbus.FieldSender].Value().(string)
	if path, ok := signal.Headers[dbus.FieldPath].Value().(dbus.ObjectPath); ok {
		values["path"] = string(path)
	}
	if len(signal.Body) > 0 {
		values["arg0"], _ = signal.Body[0].(string)
	}
	for _, rule := range rules {
		isMatch := true
		for key, value := range rule {
			if key == "sender" && owner(value) != nil {
				value = owner(value).name
			}
			isMatch = isMatch && values[key] == value
		}
		if isMatch {
			return true
		}
	}
	return false
}

// refusesCall reports whether a call to logind must be refused, because the test has chosen a [Lack] with the name of the
// method or, for Get, of the property.
func (p *peer) refusesCall(call *dbus.Message) bool {
	method := member(call)
	if method == "Get" && len(call.Body) == 2 {
		method, _ = call.Body[1].(string)
	}
	return p.missing[Lack(method)]
}

// refusesRule reports whether a match rule must be refused: the test has chosen the [Lack] with the name of the rule's signal,
// or it has chosen [LackMatches] and the rule is by sender or by argument.
func (p *peer) refusesRule(rule string) bool {
	keys := parseRule(rule)
	if p.missing[Lack(keys["member"])] {
		return true
	}
	_, isBySender := keys["sender"]
	_, isByArgument := keys["arg0"]
	return p.missing[LackMatches] && (isBySender || isByArgument)
}

// parseRule returns the keys and values of a match rule, such as type='signal',member='PrepareForShutdown'.
func parseRule(rule string) map[string]string {
	keys := map[string]string{}
	for pair := range strings.SplitSeq(rule, ",") {
		key, value, _ := strings.Cut(pair, "=")
		keys[key] = strings.Trim(value, "'")
	}
	return keys
}
