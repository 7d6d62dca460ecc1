package store

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"
)

// encodedAtOnce is how many bytes of a record are in memory at a time, and a pod more.
const encodedAtOnce = 32 << 10

// encoder writes JSON in pieces, mostly by itself. json.Marshal would build the whole text of a
// record in memory. Before its first v1.Pod it looks at the types of all fields of one, which takes
// 2 ms, as long as a drain of 110 pods. It is used for v1.Pods, for short lists, and for strings
// that need escapes.
type encoder struct {
	to   io.Writer
	text []byte // not written yet; its last byte says whether a comma comes next
	err  error  // the first one
}

// encode writes the record with its debts and pods. Fields that are zero are omitted.
func (c *Content) encode(to io.Writer) error {
	r := &c.Record
	e := &encoder{to: to, text: make([]byte, 0, encodedAtOnce+encodedAtOnce/4)}
	e.text = append(e.text, '{')
	e.number("version", recordVersion)
	e.string("bootID", r.BootID)
	if len(r.Announcements) > 0 {
		e.json("announcements", r.Announcements)
	}
	e.flag("dismissed", r.Dismissed)
	e.number("t0MonotonicNanoseconds", int64(r.T0))
	e.number("hMonotonicNanoseconds", int64(r.H))
	if r.Timetable != nil {
		e.raw("timetable", r.Timetable)
	}
	e.number("begun", int64(r.Begun))
	e.number("done", int64(r.Done))
	e.flag("prepared", r.Prepared)
	e.flag("held", r.Held)
	e.flag("published", r.Published)
	e.string("policy", r.Policy)
	if r.Refused > 0 {
		e.name("refused")
		e.text = strconv.AppendUint(e.text, r.Refused, 10)
	}
	if c.Debts != nil {
		e.open("debts", '[')
		for debt := range c.Debts {
			if !e.debt(debt) {
				break
			}
		}
		e.text = append(e.text, ']')
	}
	e.report(c)
	e.text = append(e.text, '}')
	e.flush(len(e.text))
	return e.err
}

func (e *encoder) report(c *Content) {
	r := &c.Record.Report
	e.open("report", '{')
	e.string("kind", r.Kind)
	e.string("origin", r.Origin)
	e.time("started", r.Started)
	e.time("ended", r.Ended)
	e.flag("cancelled", r.Cancelled)
	if len(r.Errors) > 0 {
		e.json("errors", r.Errors)
	}
	if c.Pods != nil {
		e.open("pods", '[')
		for pod := range c.Pods {
			if !e.pod(pod) {
				break
			}
		}
		e.text = append(e.text, ']')
	}
	e.text = append(e.text, '}')
}

// debt writes an element of an array. It returns false after an error.
func (e *encoder) debt(d *Debt) bool {
	e.comma()
	e.text = append(e.text, '{')
	e.string("kind", d.Kind)
	e.json("pod", d.Pod)
	return e.end()
}

// pod writes an element of an array. It returns false after an error.
func (e *encoder) pod(p *Pod) bool {
	e.comma()
	e.text = append(e.text, '{')
	e.string("namespace", p.Namespace)
	e.string("name", p.Name)
	e.string("uid", string(p.UID))
	e.number("priority", int64(p.Priority))
	e.number("bucket", int64(p.Bucket))
	e.number("grantedSeconds", p.GrantedSeconds)
	e.time("started", p.Started)
	e.time("shortened", p.Shortened)
	e.time("ended", p.Ended)
	e.string("outcome", p.Outcome)
	e.string("error", p.Error)
	e.flag("unflushed", p.Unflushed)
	e.flag("joined", p.Joined)
	e.flag("signalled", p.Signalled)
	e.flag("static", p.Static)
	e.flag("daemonSet", p.DaemonSet)
	if p.GraceSeconds != nil {
		e.name("graceSeconds")
		e.text = strconv.AppendInt(e.text, *p.GraceSeconds, 10)
	}
	if p.End != nil {
		e.json("end", p.End)
	}
	return e.end()
}

// end ends an element, and writes the text if there is much. It keeps one byte for comma.
func (e *encoder) end() bool {
	e.text = append(e.text, '}')
	if len(e.text) > encodedAtOnce {
		e.flush(len(e.text) - 1)
	}
	return e.err == nil
}

// flush writes the first n bytes of the text.
func (e *encoder) flush(n int) {
	if e.err == nil {
		_, e.err = e.to.Write(e.text[:n])
	}
	e.text = append(e.text[:0], e.text[n:]...)
}

// comma writes a comma unless the object or array has just begun.
func (e *encoder) comma() {
	if last := e.text[len(e.text)-1]; last != '{' && last != '[' {
		e.text = append(e.text, ',')
	}
}

// name begins a field. name needs no escapes.
func (e *encoder) name(name string) {
	e.comma()
	e.text = append(e.text, '"')
	e.text = append(e.text, name...)
	e.text = append(e.text, '"', ':')
}

// open begins a field that is an object or an array.
func (e *encoder) open(name string, delimiter byte) {
	e.name(name)
	e.text = append(e.text, delimiter)
}

func (e *encoder) flag(name string, value bool) {
	if value {
		e.name(name)
		e.text = append(e.text, "true"...)
	}
}

func (e *encoder) number(name string, value int64) {
	if value != 0 {
		e.name(name)
		e.text = strconv.AppendInt(e.text, value, 10)
	}
}

func (e *encoder) time(name string, t time.Time) {
	if t.IsZero() {
		return
	}
	e.name(name)
	text, err := t.AppendText(append(e.text, '"'))
	e.fail(err)
	if err == nil {
		e.text = append(text, '"')
	}
}

func (e *encoder) string(name, value string) {
	if value == "" {
		return
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			e.json(name, value)
			return
		}
	}
	e.name(name)
	e.text = append(e.text, '"')
	e.text = append(e.text, value...)
	e.text = append(e.text, '"')
}

// json writes a field of any type.
func (e *encoder) json(name string, value any) {
	text, err := json.Marshal(value)
	e.fail(err)
	e.name(name)
	e.text = append(e.text, text...)
}

// raw writes a field that is JSON already.
func (e *encoder) raw(name string, value json.RawMessage) {
	if !json.Valid(value) {
		e.fail(errors.New(name + " is no JSON"))
	}
	e.name(name)
	e.text = append(e.text, value...)
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}
