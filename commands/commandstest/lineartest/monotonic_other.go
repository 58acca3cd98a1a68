//go:build !linux

package lineartest

import "time"

// monotonic returns nanoseconds of a clock that all processes of this machine share: the wall clock, if there
// is no better one.
func monotonic() int64 { return time.Now().UnixNano() }
