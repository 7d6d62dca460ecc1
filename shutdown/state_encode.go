package shutdown

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"time"
)

// encode writes p as JSON, one pod after the other. json.Marshal would build the text of all pods
// in memory: 48 MB for 50,000 pods, more than the rest of a drain.
func (p *progress) encode(w io.Writer) error {
	outline := *p
	outline.Report.Pods = nil
	text, err := json.Marshal(outline)
	if err != nil {
		return err
	}
	const report = `"report":{` // no string contains it, because JSON escapes quotes in strings
	before, after, _ := bytes.Cut(text, []byte(report))
	out := bufio.NewWriter(w)
	_, _ = out.Write(before) // Flush returns the first error of out
	_, _ = out.WriteString(report)
	if err := encodePods(out, p.Report.Pods); err != nil {
		return err
	}
	_, _ = out.Write(after)
	return out.Flush()
}

// encodePods writes the pods as the first field of a report. It writes nothing for no pods.
func encodePods(out *bufio.Writer, pods []PodReport) error {
	if len(pods) == 0 {
		return nil
	}
	var pod struct {
		*PodReport

		Started storedTime `json:"started"` // hides the field of PodReport
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

// storedTime is a time that is encoded into the same memory each time. The time.Time type
// allocates for each call, which adds up over the pods.
type storedTime struct {
	time.Time

	text []byte
}

// MarshalJSON returns the encoding of time.Time. The text is valid until the next call.
func (t *storedTime) MarshalJSON() (text []byte, err error) {
	if t.text, err = t.AppendText(append(t.text[:0], '"')); err != nil {
		return nil, err
	}
	t.text = append(t.text, '"')
	return t.text, nil
}
