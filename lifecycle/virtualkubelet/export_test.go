package virtualkubelet

import (
	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// Judged records what the provider's terminator does.
func Judged(record *judge.Record) func(*Options) {
	return func(o *Options) {
		o.newTerminator = func(opts lifecycle.TerminatorOptions) (terminator, error) { return record.NewTerminator(opts) }
	}
}
