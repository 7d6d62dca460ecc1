package atomicfile

// SyncDir does nothing: Windows cannot sync a directory, and journals renames.
func SyncDir(string) error { return nil }
