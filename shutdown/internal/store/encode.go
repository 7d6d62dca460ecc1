package store

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"iter"
	"strconv"
	"time"
)

// encodedAtOnce is how many bytes of a record are in memory at a time, and a pod more.
const encodedAtOnce = 32 << 10

// encode writes the record with its debts and pods. json.Marshal would build the whole text in
// memory; here it makes one with an empty debt and an empty pod, in whose place those of c come.
func (c *Content) encode(to io.Writer) error {
	r := c.Record
	r.Version, r.Debts, r.Report.Pods = recordVersion, nil, nil
	if c.Debts != nil {
		r.Debts = make([]Debt, 1)
	}
	if c.Pods != nil {
		r.Report.Pods = make([]Pod, 1)
	}
	text, err := json.Marshal(r)
	w := bufio.NewWriterSize(to, encodedAtOnce)
	if c.Debts != nil && err == nil {
		empty := []byte(`{"kind":"","pod":null}`)
		at := bytes.LastIndex(text, empty) // behind the timetable only strings follow, whose quotes are escaped
		err = writeAll(w, text[:at], c.Debts, func(o *object, d *Debt) { o.add(d) })
		text = text[at+len(empty):]
	}
	if c.Pods != nil && err == nil {
		before, _ := bytes.CutSuffix(text, []byte("{}]}}"))
		text, err = []byte("]}}"), writeAll(w, before, c.Pods, (*object).pod)
	}
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	return w.Flush()
}

// writeAll writes a text and the elements of an array behind it.
func writeAll[T any](w *bufio.Writer, before []byte, all iter.Seq[*T], add func(*object, *T)) error {
	_, err := w.Write(before)
	if err != nil {
		return err
	}
	var o object
	for element := range all {
		if add(&o, element); o.err != nil {
			return o.err
		}
		if _, err := w.Write(o.text); err != nil {
			return err
		}
		o.text = append(o.text[:0], ',')
	}
	return nil
}

// object makes the text of a JSON object. Fields that are zero are omitted.
type object struct {
	text []byte
	err  error // the first one
}

// pod is json.Marshal, five times as fast: the first kill and the release wait for the record.
func (o *object) pod(p *Pod) {
	o.text = append(o.text, '{')
	o.string("namespace", p.Namespace)
	o.string("name", p.Name)
	o.string("uid", string(p.UID))
	o.number("priority", int64(p.Priority))
	o.number("bucket", int64(p.Bucket))
	o.number("grantedSeconds", p.GrantedSeconds)
	o.time("started", p.Started)
	o.time("shortened", p.Shortened)
	o.time("ended", p.Ended)
	o.string("outcome", p.Outcome)
	o.string("error", p.Error)
	o.flag("unflushed", p.Unflushed)
	o.flag("joined", p.Joined)
	o.flag("signalled", p.Signalled)
	o.flag("static", p.Static)
	o.flag("daemonSet", p.DaemonSet)
	if p.GraceSeconds != nil {
		o.key("graceSeconds")
		o.text = strconv.AppendInt(o.text, *p.GraceSeconds, 10)
	}
	if p.End != nil {
		o.key("end")
		o.add(p.End)
	}
	o.text = append(o.text, '}')
}

// key begins a field. name needs no escapes.
func (o *object) key(name string) {
	if o.text[len(o.text)-1] != '{' {
		o.text = append(o.text, ',')
	}
	o.text = append(append(append(o.text, '"'), name...), '"', ':')
}

// add adds a value of any type.
func (o *object) add(value any) {
	text, err := json.Marshal(value)
	o.text, o.err = append(o.text, text...), cmp.Or(o.err, err)
}

func (o *object) flag(name string, value bool) {
	if value {
		o.key(name)
		o.text = append(o.text, "true"...)
	}
}

func (o *object) number(name string, value int64) {
	if value != 0 {
		o.key(name)
		o.text = strconv.AppendInt(o.text, value, 10)
	}
}

func (o *object) time(name string, t time.Time) {
	if !t.IsZero() {
		o.key(name)
		text, err := t.AppendText(append(o.text, '"'))
		o.text, o.err = append(text, '"'), cmp.Or(o.err, err)
	}
}

func (o *object) string(name, value string) {
	if value == "" {
		return
	}
	o.key(name)
	for i := range len(value) {
		if c := value[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			o.add(value)
			return
		}
	}
	o.text = append(append(append(o.text, '"'), value...), '"')
}
