//go:build !linux

package lineartest

import "time"

// monotonic is a clock in nanoseconds that all processes of this machine share: the wall clock, where there
// is no better one.
func monotonic() int64 { return time.Now().UnixNano() }
