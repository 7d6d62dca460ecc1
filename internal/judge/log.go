package judge

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	errDidNotReturn = errors.New("the call panicked or ended its goroutine")
	errInvalidID    = errors.New("invalid container ID")
)

// sink is a logger that writes to a record, so that rules can check what was logged.
type sink struct {
	record *Record
	values []any
}

func (s *sink) Init(logr.RuntimeInfo)  {}
func (s *sink) Enabled(level int) bool { return level == 0 }
func (s *sink) WithName(string) logr.LogSink {
	return s
}

func (s *sink) WithValues(values ...any) logr.LogSink {
	return &sink{record: s.record, values: append(append([]any{}, s.values...), values...)}
}

func (s *sink) Info(_ int, text string, values ...any) { s.log(nil, text, values) }

func (s *sink) Error(err error, text string, values ...any) { s.log(err, text, values) }

// log records a line as the text, the error (nil: there is none) and the values as KEY=VALUE, first those of the
// logger (s.values) and then those of the line. The stack of a panic is left out. A value follows its key in a list.
func (s *sink) log(err error, text string, values []any) {
	entry := LogEntry{Reason: text, IsError: err != nil}
	var b strings.Builder
	b.WriteString(text)
	if err != nil {
		fmt.Fprintf(&b, ": %s", errText(err))
	}
	for _, list := range [][]any{s.values, values} {
		for i := 0; i+1 < len(list); i += 2 {
			if list[i] != "stack" {
				fmt.Fprintf(&b, " %v=%v", list[i], list[i+1])
			}
		}
	}
	entry.Text = b.String()
	s.record.record(func(now Moment) {
		entry.Moment = now
		s.record.logs = append(s.record.logs, entry)
	})
}

// metaOf returns the metadata of the pod that an event refers to.
func metaOf(about *v1.ObjectReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{UID: about.UID, Namespace: about.Namespace, Name: about.Name}
}
