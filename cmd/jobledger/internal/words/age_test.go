package words

import (
	"testing"
	"time"

	"jobledger/projection"
)

func TestAgeOrDate(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, zone)
	tests := []struct {
		t              time.Time
		age, on, since string
	}{
		{now.Add(-90 * time.Second), "1m30s ago", "1m30s ago", "1m30s"},
		{now.Add(-48 * time.Hour), "2d ago", "2d ago", "2d"},
		{now.Add(-48*time.Hour - time.Second), "2026-11-21 11:59+02:00", "on 2026-11-21 11:59+02:00",
			"2026-11-21 11:59+02:00"},
		{time.Date(2026, 3, 15, 10, 2, 0, 0, time.UTC), "2026-03-15 12:02+02:00", "on 2026-03-15 12:02+02:00",
			"2026-03-15 12:02+02:00"},
		{now.Add(time.Hour), "in 1h", "in 1h", "0s"},
		{now.Add(100 * 24 * time.Hour), "2027-03-03 12:00+02:00", "on 2027-03-03 12:00+02:00",
			"2027-03-03 12:00+02:00"},
	}
	for _, tt := range tests {
		age, on, since := AgeOrDate(tt.t, now), AgeOrOn(tt.t, now), Since(tt.t, now)
		if age != tt.age || on != tt.on || since != tt.since {
			t.Errorf("%s: got %q, %q, %q; want %q, %q, %q", tt.t, age, on, since, tt.age, tt.on, tt.since)
		}
	}
}

func TestFailureText(t *testing.T) {
	seven := 7
	tests := []struct {
		code string
		exit projection.Exit
		want string
	}{
		{"", projection.Exit{}, ""},
		{"smtp", projection.Exit{}, "smtp"},
		{"exit_code", projection.Exit{Code: &seven}, "exit 7"},
		{"exit_code", projection.Exit{}, "exit_code"},
		{"signal", projection.Exit{Signal: "SIGKILL"}, "signal SIGKILL"},
		{"max_runtime", projection.Exit{Signal: "SIGTERM"}, "max_runtime (signal SIGTERM)"},
		{"smtp", projection.Exit{Code: &seven}, "smtp (exit 7)"},
	}
	for _, tt := range tests {
		if got := FailureText(tt.code, tt.exit); got != tt.want {
			t.Errorf("%s, %v: got %q, want %q", tt.code, tt.exit, got, tt.want)
		}
	}
}
