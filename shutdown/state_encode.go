package shutdown

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"time"
)

// encode writes progress as JSON, one pod after the other. json.Marshal would build the text
// of all pods in memory, which is more than all that a drain knows of them: of 50,000 pods
// it took 48 MB.
func (p *progress) encode(w io.Writer) error {
	outline := *p
	outline.Report.Pods = nil
	text, err := json.Marshal(outline)
	if err != nil {
		return err
	}
	const report = `"report":{` // is in no string: there the quotes would be escaped
	before, after, _ := bytes.Cut(text, []byte(report))
	out := bufio.NewWriter(w)
	_, _ = out.Write(before) // Flush gives the error of this and of all that follow
	_, _ = out.WriteString(report)
	if err := encodePods(out, p.Report.Pods); err != nil {
		return err
	}
	_, _ = out.Write(after)
	return out.Flush()
}

// encodePods writes the pods of a report as its first field; nothing if there are none.
func encodePods(out *bufio.Writer, pods []PodReport) error {
	if len(pods) == 0 {
		return nil
	}
	var pod struct {
		*PodReport

		Started storedTime `json:"started"` // instead of those of PodReport
		Ended   storedTime `json:"ended"`
	}
	encoder := json.NewEncoder(out)
	separator := `"pods":[`
	for i := range pods {
		_, _ = out.WriteString(separator)
		separator = ","
		pod.PodReport, pod.Started.Time, pod.Ended.Time = &pods[i], pods[i].Started, pods[i].Ended
		if err := encoder.Encode(&pod); err != nil {
			return err
		}
	}
	_, err := out.WriteString("],")
	return err
}

// storedTime is a time that is encoded into the same memory again and again: time.Time
// takes new memory each time, which adds up over the pods.
type storedTime struct {
	time.Time

	text []byte
}

// MarshalJSON gives what that of time.Time gives. It is good until the next call.
func (t *storedTime) MarshalJSON() (text []byte, err error) {
	if t.text, err = t.AppendText(append(t.text[:0], '"')); err != nil {
		return nil, err
	}
	t.text = append(t.text, '"')
	return t.text, nil
}
