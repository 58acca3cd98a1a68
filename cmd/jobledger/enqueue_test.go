package main

import (
	"testing"
	"time"
)

func TestRunAtIsTheNextOne(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	tests := []struct{ now, text, want string }{
		{"2026-05-04T10:15:00+02:00", "10:16", "2026-05-04T10:16:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "10:15", "2026-05-05T10:15:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "10:14:59", "2026-05-05T10:14:59+02:00"},
		{"2026-05-04T10:15:00+02:00", "+10m", "2026-05-04T10:25:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "-10m", "2026-05-04T10:05:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "2026-05-04T01:00:00Z", "2026-05-04T03:00:00+02:00"},
		{"2026-03-29T01:00:00+01:00", "02:30", "2026-03-29T03:30:00+02:00"}, // does not exist on that day
		{"2026-03-29T12:00:00+02:00", "02:30", "2026-03-30T02:30:00+02:00"},
		{"2026-03-28T12:00:00+01:00", "11:00", "2026-03-29T11:00:00+02:00"},
		{"2026-10-24T12:00:00+02:00", "13:00", "2026-10-24T13:00:00+02:00"},
	}
	for _, tt := range tests {
		now, _ := time.Parse(time.RFC3339, tt.now)
		got, err := parseRunAt("--run-at", tt.text, now.In(zone))
		if err != nil || got.In(zone).Format(time.RFC3339) != tt.want {
			t.Errorf("%s at %s: got %v, %v, want %s", tt.text, tt.now, got, err, tt.want)
		}
	}
}
