package logindconf

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// Setting is the name of the limit, in section Login.
	Setting = "InhibitDelayMaxSec"
	// Default is logind's limit without the setting (logind.conf(5)).
	Default = 5 * time.Second
)

// File is a file that sets the limit, or that cannot be read or parsed.
type File struct {
	Path  string        // from the root of the host
	Limit time.Duration // [Unlimited] for infinity
	Text  []byte        // all of the file
	Err   error         // nil: the file was read and sets the limit; else Limit is 0
}

// Files returns the files of a host that set InhibitDelayMaxSec, in logind's order. The last one without an Err counts (Last).
//
//   - Folders that cannot be read come first, with an Err. Files that cannot be read have an Err too: logind skips them.
//   - A file that systemd cannot parse has an Err, and ends the list: systemd ignores all later files.
//   - The drop-ins at the paths ignored count as missing.
func Files(host fs.FS, ignored ...string) []File {
	names, found := fileNames(host, ignored)
	for _, name := range names {
		file, ok := read(host, name)
		if ok {
			found = append(found, file)
		}
		if errors.Is(file.Err, errInvalid) {
			break
		}
	}
	return found
}

// Last returns the file whose limit counts: the last one without an Err. nil: none sets the limit.
func Last(files []File) *File {
	for i, file := range slices.Backward(files) {
		if file.Err == nil {
			return &files[i]
		}
	}
	return nil
}

// fileNames lists the files that logind reads, in its order. These are the main file, if there is one, and the drop-ins
// sorted by name across all directories. Of drop-ins with the same name only the one in the first directory is read
// (systemd.unit(5)). The drop-ins whose absolute paths are in ignored count as missing. unread has the directories that cannot
// be read.
func fileNames(host fs.FS, ignored []string) (files []string, unread []File) {
	dropIns := map[string]string{}                                                  // file name: path
	for _, dir := range []string{"etc", "run", "usr/local/lib", "usr/lib", "lib"} { // in order of precedence
		main := path.Join(dir, "systemd/logind.conf")
		// Only the first main file is read (logind.conf(5)). systemd 257 looks for it in all directories, systemd 252 only in /etc.
		if _, err := fs.Stat(host, main); err == nil && len(files) == 0 {
			files = append(files, main)
		}
		entries, err := fs.ReadDir(host, main+".d")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			unread = append(unread, File{Path: "/" + main + ".d", Err: err})
		}
		for _, entry := range entries {
			file := path.Join(main+".d", entry.Name())
			_, isOverridden := dropIns[entry.Name()] // by a directory of higher precedence
			isRead := path.Ext(file) == ".conf" && !slices.Contains(ignored, "/"+file)
			if isRead && !isOverridden {
				dropIns[entry.Name()] = file
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dropIns)) {
		files = append(files, dropIns[name])
	}
	return files, unread
}

// read reads one file. ok is false if logind does not take a limit from it: it is no regular file, or does not set the
// limit. If it cannot be read, ok is true and Err says why.
func read(host fs.FS, name string) (file File, ok bool) {
	file.Path = "/" + name
	// Masks are links to /dev/null, and reading a pipe could block forever.
	if info, err := fs.Stat(host, name); err == nil && !info.Mode().IsRegular() {
		return file, false
	}
	if file.Text, file.Err = fs.ReadFile(host, name); file.Err != nil {
		return file, true
	}
	file.Limit, ok, file.Err = limitIn(string(file.Text))
	return file, ok
}

// errInvalid is the Err of a file that systemd cannot parse.
var errInvalid = errors.New("systemd-logind cannot parse it, and ignores all files after it")

// limitIn returns the limit that the text of a file sets, as systemd's config_parse reads it: a line without an equals sign is
// skipped, and of several lines the last valid one wins. An invalid section header, or a line that is not UTF-8, is errInvalid.
func limitIn(text string) (limit time.Duration, isSet bool, err error) {
	var section string
	for _, line := range joinedLines(text) {
		isHeader := strings.HasPrefix(line, "[")
		isBrokenHeader := isHeader && !strings.HasSuffix(line, "]")
		if isBrokenHeader || !utf8.ValidString(line) {
			return 0, true, errInvalid
		}
		if isHeader {
			section = line
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		if section != "[Login]" || strings.TrimRight(key, " \t") != Setting {
			continue
		}
		if span, err := parseTimespan(value); err == nil {
			limit, isSet = span, true
		}
	}
	return limit, isSet, nil
}

// joinedLines returns the lines of a file without the white space around them and without comments. A backslash at the end of a
// line continues it, also past comments.
func joinedLines(text string) (lines []string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\n").Replace(strings.TrimPrefix(text, "\ufeff"))
	var line string
	for part := range strings.SplitSeq(text+"\n", "\n") { // the last part is empty, and ends a continued line
		part = strings.TrimLeft(part, " \t")
		if strings.HasPrefix(part, "#") || strings.HasPrefix(part, ";") {
			continue
		}
		line += part
		backslashes := len(line) - len(strings.TrimRight(line, `\`))
		if isContinued := backslashes%2 == 1; isContinued {
			line = line[:len(line)-1] + " "
			continue
		}
		lines = append(lines, strings.Trim(line, " \t"))
		line = ""
	}
	return lines
}
