package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	errDidNotReturn = errors.New("the call panicked or ended its goroutine")
	errInvalidID    = errors.New("invalid container ID")
)

// logSink is a logger that writes to a record, so that rules can check what was logged.
type logSink struct {
	record *Record
	values []any
}

func (s *logSink) Init(logr.RuntimeInfo)  {}
func (s *logSink) Enabled(level int) bool { return level == 0 }
func (s *logSink) WithName(string) logr.LogSink {
	return s
}

func (s *logSink) WithValues(values ...any) logr.LogSink {
	return &logSink{record: s.record, values: slices.Concat(s.values, values)}
}

func (s *logSink) Info(_ int, text string, values ...any) { s.log(nil, text, values) }

func (s *logSink) Error(err error, text string, values ...any) { s.log(err, text, values) }

// log records a line as TEXT: ERROR KEY=VALUE ..., without the stack of a panic. A nil error means that the line is no error. In
// values, as in logr, each key is followed by its value; those of the logger come first.
func (s *logSink) log(err error, text string, values []any) {
	var b strings.Builder
	b.WriteString(text)
	if err != nil {
		fmt.Fprintf(&b, ": %s", errText(err))
	}
	all := slices.Concat(s.values, values)
	for i := 0; i+1 < len(all); i += 2 {
		if key, value := all[i], all[i+1]; key != "stack" {
			fmt.Fprintf(&b, " %v=%v", key, value)
		}
	}
	s.record.record(func(now Moment) {
		s.record.logs = append(s.record.logs, LogEntry{Moment: now, Reason: text, Text: b.String(), IsError: err != nil})
	})
}

// podMetadata returns the metadata of the pod that an event refers to.
func podMetadata(about *v1.ObjectReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{UID: about.UID, Namespace: about.Namespace, Name: about.Name}
}
