//go:build !unix

package ledger

import "os"

// canLockWhole says whether a file can be kept from all others. Here that would keep it from being renamed too; and the
// system renames no file that somebody has open.
const canLockWhole = false

func lockWhole(*os.File) error { return nil }

// keepName is done without here: the file is compared with its name once SQLite has a lock on it.
func keepName(string) (*os.File, error) { return nil, nil }
