package when

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobledger/ledger/event"
)

// ParseRate reads how many jobs may start within a time, as in "100/1m", or "100/m" for one of the unit. The
// time is in whole microseconds.
func ParseRate(s string) (n int, per time.Duration, err error) {
	count, length, ok := strings.Cut(s, "/")
	if n, err = strconv.Atoi(count); !ok || err != nil || n < 1 || n > event.MaxRunning {
		return 0, 0, fmt.Errorf("%q is not a number of jobs and a time, such as 100/1m", s)
	}
	if len(length) == 1 {
		length = "1" + length
	}
	per, err = DurationWithin(length, time.Millisecond, event.MaxRatePer, false)
	return n, per.Truncate(time.Microsecond), err
}
