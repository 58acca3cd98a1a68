package when

import (
	"strings"
	"testing"
	"time"
)

func TestSpoken(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skipf("no database of time zones: %v", err)
	}
	now := time.Date(2026, 11, 24, 14, 30, 0, 0, zone) // a Tuesday
	for _, tt := range []struct{ in, past, next string }{
		{"now", "2026-11-24 14:30 CET", "2026-11-24 14:30 CET"},
		{"02:00", "2026-11-24 02:00 CET", "2026-11-25 02:00 CET"},
		{"2pm", "2026-11-24 14:00 CET", "2026-11-25 14:00 CET"},
		{"2:31PM", "2026-11-23 14:31 CET", "2026-11-24 14:31 CET"},
		{"12am", "2026-11-24 00:00 CET", "2026-11-25 00:00 CET"},
		{"noon", "2026-11-24 12:00 CET", "2026-11-25 12:00 CET"},
		{"midnight", "2026-11-24 00:00 CET", "2026-11-25 00:00 CET"},
		{"teatime", "2026-11-23 16:00 CET", "2026-11-24 16:00 CET"},
		{"today", "2026-11-24 00:00 CET", "2026-11-24 00:00 CET"},
		{"tomorrow 6:00", "2026-11-25 06:00 CET", "2026-11-25 06:00 CET"},
		{"Yesterday", "2026-11-23 00:00 CET", "2026-11-23 00:00 CET"},
		{"tue", "2026-11-24 00:00 CET", "2026-12-01 00:00 CET"},
		{"tue 02:00", "2026-11-24 02:00 CET", "2026-12-01 02:00 CET"},
		{"15:00 Tuesday", "2026-11-17 15:00 CET", "2026-11-24 15:00 CET"},
		{"next tue", "2026-12-01 00:00 CET", "2026-12-01 00:00 CET"},
		{"last tue 15:00", "2026-11-17 15:00 CET", "2026-11-17 15:00 CET"},
		{"24 dec", "2025-12-24 00:00 CET", "2026-12-24 00:00 CET"},
		{"dec 24 2027 noon", "2027-12-24 12:00 CET", "2027-12-24 12:00 CET"},
		{"29 february", "2024-02-29 00:00 CET", "2028-02-29 00:00 CET"},
		{"2026-07-24", "2026-07-24 00:00 CEST", "2026-07-24 00:00 CEST"},
		{"2026-07-24T18:00", "2026-07-24 18:00 CEST", "2026-07-24 18:00 CEST"},
		{"2026-07-24 18:00:05", "2026-07-24 18:00 CEST", "2026-07-24 18:00 CEST"},
		{"now + 2 hours", "2026-11-24 16:30 CET", "2026-11-24 16:30 CET"},
		{"tomorrow + 1 week - 10m", "2026-12-01 23:50 CET", "2026-12-01 23:50 CET"},
		{"- 3 days", "2026-11-21 14:30 CET", "2026-11-21 14:30 CET"},
		{"-2h", "2026-11-24 12:30 CET", "2026-11-24 12:30 CET"},
		{"2026-07-24T18:00Z", "2026-07-24 20:00 CEST", "2026-07-24 20:00 CEST"},
		{"2026-03-29 02:30", "2026-03-29 03:00 CEST", "2026-03-29 03:00 CEST"},
		{"2026-10-25 02:30", "2026-10-25 02:30 CEST", "2026-10-25 02:30 CEST"},
	} {
		for next, want := range map[bool]string{false: tt.past, true: tt.next} {
			h, err := Spoken(tt.in, now, next)
			if got := h.Time.In(zone).Format("2006-01-02 15:04 MST"); err != nil || got != want {
				t.Errorf("%s, next %v: got %s, %v, want %s", tt.in, next, got, err, want)
			}
		}
	}
	for in, want := range map[string]string{"tue 02:00": "Tue 2026-11-24 02:00 CET", "-2h": "", "now": "",
		"2026-07-24T18:00Z": "", "now + 2 hours": "", "2026-07-24 18:00:05": "Fri 2026-07-24 18:00:05 CEST",
		"2026-03-29 02:30": "Sun 2026-03-29 03:00 CEST, the first moment after those that the clocks skip",
		"2026-10-25 02:30": "Sun 2026-10-25 02:30 CEST, which the clocks show again at 02:30 CET"} {
		if h, err := Spoken(in, now, false); err != nil || h.As != want {
			t.Errorf("%s is understood as %q, %v, want %q", in, h.As, err, want)
		}
	}
	if h, err := Spoken("pos:42", now, false); err != nil || h.Pos != 42 {
		t.Errorf("pos:42: %v, %v", h, err)
	}
	for in, want := range map[string]string{"17": "is not a time", "25:00": "is not a time",
		"foo":  "is not a time",
		"13pm": "is not a time", "tue wed": "is not a time", "tue 2:00 3:00": "is not a time",
		"30 feb": "is not a day", "2026-02-30": "is not a time", "feb 29 2027": "is not a day",
		"next": "is not a time", "next week": "is not a time", "now 2:00": "is not a time",
		"now + 2": "is not a time", "+ 2 parsecs": "is not a time",
		"": "is not a time", "2h": "could be past or future", "noon noon": "is not a time"} {
		if h, err := Spoken(in, now, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want %q", in, h, err, want)
		}
	}
	if _, err := Spoken("pos:42", now, true); err == nil {
		t.Error("a job runs at a position")
	}
}
