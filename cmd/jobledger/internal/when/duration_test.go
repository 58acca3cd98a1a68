package when

import (
	"testing"
	"time"
)

func TestDurationWithin(t *testing.T) {
	tests := []struct {
		in   string
		want time.Duration
	}{
		{"90s", 90 * time.Second},
		{"1h30m", 90 * time.Minute},
		{"1.5h", 90 * time.Minute},
		{"1d", 24 * time.Hour},
		{"2d3h", 51 * time.Hour},
		{"0s", 0},
		{"0d", 0},
	}
	for _, tt := range tests {
		got, err := DurationWithin(tt.in, time.Second, 100*24*time.Hour, true)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
}

func TestDurationWithinRefuses(t *testing.T) {
	tests := []struct{ in, why string }{
		{"10", `"10" has no unit; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"0", `"0" has no unit; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"1d0", `"1d0" has no unit; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"-5s", `"-5s" is negative; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"1d-5s", `"1d-5s" is negative; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"+5s", `"+5s" is not a duration; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"", `"" is not a duration; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"soon", `"soon" is not a duration; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"9999999999h", `"9999999999h" is too long; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"106752d", `"106752d" is too long; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"106751d24h", `"106751d24h" is too long; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"99999999999999999999d",
			`"99999999999999999999d" is too long; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"0s", `0s is out of range; give a duration from 1s to 1d`},
		{"999ms", `999ms is out of range; give a duration from 1s to 1d`},
		{"24h1ns", `24h1ns is out of range; give a duration from 1s to 1d`},
	}
	for _, tt := range tests {
		_, err := DurationWithin(tt.in, time.Second, 24*time.Hour, false)
		if err == nil || err.Error() != tt.why {
			t.Errorf("%q: got %v, want %q", tt.in, err, tt.why)
		}
	}
}

func TestSpan(t *testing.T) {
	tests := []struct {
		lo, hi    time.Duration
		allowZero bool
		want      string
	}{
		{0, 0, false, "above 0s"},
		{0, 0, true, "of 0s or more"},
		{0, time.Hour, false, "above 0s and up to 1h"},
		{0, time.Hour, true, "from 0s to 1h"},
		{time.Second, time.Hour, false, "from 1s to 1h"},
		{time.Second, time.Hour, true, "from 1s to 1h, or 0s"},
		{time.Second, 0, false, "of at least 1s"},
	}
	for _, tt := range tests {
		if got := span(tt.lo, tt.hi, tt.allowZero); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
