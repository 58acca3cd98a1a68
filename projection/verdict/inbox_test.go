package verdict

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/ledger/event"
	"jobledger/projection/inbox"
)

// Rows that wait are judged by the age of the first one. Refused rows are a warning of their own.
func TestInboxIsJudgedByItsAge(t *testing.T) {
	now := time.Date(2026, 3, 15, 2, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		age     time.Duration
		refused int64
		want    string
	}{
		{0, 0, ""}, {4 * time.Second, 0, ""}, {5 * time.Second, 0, "D49 0 3"}, {59 * time.Second, 0, "D49 0 3"},
		{time.Minute, 0, "D49 1 3"}, {10 * time.Minute, 0, "D49 2 3"}, {-time.Minute, 0, ""},
		{0, 2, "D49 1 2 refused"}, {time.Hour, 2, "D49 2 3, D49 1 2 refused"},
	} {
		f := Facts{At: now, Inbox: inbox.Counts{Refused: c.refused}}
		if c.age != 0 {
			f.Inbox.Waiting, f.Inbox.Oldest = 3, event.Micros(now.Add(-c.age))
		}
		if c.refused > 0 {
			f.Refused.N = 7
		}
		var got []string
		for _, p := range f.Judge() {
			text := fmt.Sprintf("%s %d %d", p.Code, p.Level, p.Jobs)
			if p.Refused.N != 0 {
				text += " refused"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s, %d refused: got %q, want %q", c.age, c.refused, text, c.want)
		}
	}
}
