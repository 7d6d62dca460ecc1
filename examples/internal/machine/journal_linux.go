package machine

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ShuttingDown is the MESSAGE_ID (SD_MESSAGE_SHUTDOWN) of the entry that logind logs when it proceeds with a
// shutdown: all delay locks are released, or its limit is over.
const ShuttingDown = "98268866d1d54a499c4e98921d93bc40"

// Entry is one entry of a journal.
type Entry struct {
	Time      time.Time // host and machine share the clock
	Unit      string    // the unit of the process
	MessageID string    // "" if the entry has none
	Message   string    // "" if it is not UTF-8
}

// Journal returns the entries of the journal, in order, of all boots. Call it when the machine is off: a
// running machine has not written all of them.
func (m *Machine) Journal(t testing.TB) []Entry {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "journalctl", "--directory", m.journal(), "--output=json", "--no-pager").Output()
	require.NoError(t, err)
	var entries []Entry
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var raw struct {
			Microseconds int64           `json:"__REALTIME_TIMESTAMP,string"`
			Unit         string          `json:"_SYSTEMD_UNIT"`
			MessageID    string          `json:"MESSAGE_ID"`
			Message      json.RawMessage `json:"MESSAGE"` // a string, or a list of bytes if it is not UTF-8
		}
		require.NoError(t, decoder.Decode(&raw))
		entry := Entry{Time: time.UnixMicro(raw.Microseconds), Unit: raw.Unit, MessageID: raw.MessageID}
		_ = json.Unmarshal(raw.Message, &entry.Message) // fails for a list
		entries = append(entries, entry)
	}
	return entries
}
