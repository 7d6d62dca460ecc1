package machine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ShuttingDown is the MESSAGE_ID (SD_MESSAGE_SHUTDOWN) of the entry that logind logs when it goes on with a
// shutdown: all delay locks are released, or its limit is over.
const ShuttingDown = "98268866d1d54a499c4e98921d93bc40"

// Entry is one entry of a journal.
type Entry struct {
	Time       time.Time // host and machine share the clock
	Identifier string    // SYSLOG_IDENTIFIER, such as systemd-logind
	Unit       string    // the unit of the process
	MessageID  string    // "" if the entry has none
	Message    string
}

// rawEntry is an entry as journalctl prints it. Message is a string, or a list of bytes if it is not UTF-8.
type rawEntry struct {
	Time       string          `json:"__REALTIME_TIMESTAMP"`
	Identifier string          `json:"SYSLOG_IDENTIFIER"`
	Unit       string          `json:"_SYSTEMD_UNIT"`
	MessageID  string          `json:"MESSAGE_ID"`
	Message    json.RawMessage `json:"MESSAGE"`
}

// Journal returns the entries of the journal, in order, of all boots. Call it when the machine is off: a
// running machine has not written all of them.
func (m *Machine) Journal(t testing.TB) []Entry {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "journalctl", "--directory", m.journal(), "--output=json", "--no-pager").Output()
	require.NoError(t, err)
	var entries []Entry
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	for lines.Scan() {
		entry, err := parseEntry(lines.Bytes())
		require.NoError(t, err)
		entries = append(entries, entry)
	}
	require.NoError(t, lines.Err())
	return entries
}

// parseEntry parses one line of journalctl --output=json. journalctl prints a message that is not UTF-8 as a
// list of numbers, one for each byte.
func parseEntry(line []byte) (Entry, error) {
	var raw rawEntry
	if err := json.Unmarshal(line, &raw); err != nil {
		return Entry{}, fmt.Errorf("failed to read a journal entry %q: %w", line, err)
	}
	microseconds, err := strconv.ParseInt(raw.Time, 10, 64)
	if err != nil {
		return Entry{}, fmt.Errorf("failed to read the time of journal entry %q: %w", line, err)
	}
	entry := Entry{Time: time.UnixMicro(microseconds), Identifier: raw.Identifier, Unit: raw.Unit, MessageID: raw.MessageID}
	if err := json.Unmarshal(raw.Message, &entry.Message); err == nil {
		return entry, nil
	}
	var bytes []int // json reads a list of numbers into []int, not into []byte
	if err := json.Unmarshal(raw.Message, &bytes); err != nil {
		return Entry{}, fmt.Errorf("failed to read the message of journal entry %q: %w", line, err)
	}
	for _, b := range bytes {
		entry.Message += string([]byte{byte(b)})
	}
	return entry, nil
}
