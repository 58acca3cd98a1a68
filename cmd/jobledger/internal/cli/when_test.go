package cli

import (
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/render"
)

func TestParseWhen(t *testing.T) {
	tests := []struct{ in, want string }{
		{"2026-05-04T10:00:00Z", "2026-05-04T10:00:00.000000Z"},
		{"2026-05-04T10:00:00.123456+02:00", "2026-05-04T08:00:00.123456Z"},
		{"2026-05-04t10:00:00z", "2026-05-04T10:00:00.000000Z"},
		{"2026-05-04 10:00:00+02:00", "2026-05-04T08:00:00.000000Z"},
		{"2026-05-04T10:00Z", "2026-05-04T10:00:00.000000Z"},
		{"2026-05-04 10:00-03:30", "2026-05-04T13:30:00.000000Z"},
		{"11:59", "2026-05-04T06:14:00.000000Z"},
		{"12:00", "2026-05-04T06:15:00.000000Z"},
		{"12:00:01", "2026-05-03T06:15:01.000000Z"},
		{"9:30", "2026-05-04T03:45:00.000000Z"},
		{"23:59:59", "2026-05-03T18:14:59.000000Z"},
		{"-2h", "2026-05-04T04:15:00.000000Z"},
		{"-90m", "2026-05-04T04:45:00.000000Z"},
		{"-1d", "2026-05-03T06:15:00.000000Z"},
		{"-1d12h", "2026-05-02T18:15:00.000000Z"},
		{"+10m", "2026-05-04T06:25:00.000000Z"},
		{"pos:0", "pos:0"},
		{"pos:42", "pos:42"},
	}
	for _, tt := range tests {
		w, err := ParseWhen("at", tt.in, noon())
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		got := render.JSONTime(w.Time)
		if w.ByPos {
			got = w.String()
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestParseWhenRefuses(t *testing.T) {
	tests := []struct{ in, why string }{
		{"2026-05-04", "has no time zone: add Z or an offset such as +02:00"},
		{"2026-05-04 10:00", "has no time zone: add Z or an offset such as +02:00"},
		{"2026-05-04T10:00:00", "has no time zone: add Z or an offset such as +02:00"},
		{"2026-02-30T10:00:00Z", "is no time"},
		{"24:00", "is no time"},
		{"12:60", "is no time"},
		{"", "is no time"},
		{"yesterday", "is no time"},
		{"2h", "could be past or future: put - or + in front"},
		{"-2", "is no time from now: has no unit"},
		{"--2h", "is no time from now: is negative"},
		{"-", "is no time from now: is no duration"},
		{"pos:", "is not pos: and a whole number"},
		{"pos:-1", "is not pos: and a whole number"},
		{"pos:9223372036854775808", "is not pos: and a whole number"},
	}
	for _, tt := range tests {
		_, err := ParseWhen("at", tt.in, noon())
		code, why, hint := Explain(err)
		if code != ExitUsage || !strings.HasSuffix(why, `" `+tt.why) || hint != whenForms {
			t.Errorf("%q: got %d, %q, hint %q; want %q", tt.in, code, why, hint, tt.why)
		}
	}
}

// What a table shows must be good as input.
func TestParseWhenReadsFormattedTimes(t *testing.T) {
	for _, at := range []time.Time{noon(), noon().UTC()} {
		w, err := ParseWhen("at", render.Time(at), noon())
		if err != nil || !w.Time.Equal(at) {
			t.Errorf("%s: got %s, %v", render.Time(at), w, err)
		}
	}
}

func TestParseDuration(t *testing.T) {
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
		got, err := ParseDuration("delay", tt.in, time.Second, 100*24*time.Hour, true)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
}

func TestParseDurationRefuses(t *testing.T) {
	tests := []struct{ in, why string }{
		{"10", `--lease: "10" has no unit; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"0", `--lease: "0" has no unit; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"1d0", `--lease: "1d0" has no unit; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"-5s", `--lease: "-5s" is negative; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"1d-5s", `--lease: "1d-5s" is negative; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"+5s", `--lease: "+5s" is no duration; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"", `--lease: "" is no duration; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"soon", `--lease: "soon" is no duration; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"9999999999h", `--lease: "9999999999h" is too long; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"106752d", `--lease: "106752d" is too long; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"106751d24h", `--lease: "106751d24h" is too long; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"99999999999999999999d",
			`--lease: "99999999999999999999d" is too long; give a duration from 1s to 1d, such as 90s or 1h30m`},
		{"0s", `--lease: 0s is out of range; give a duration from 1s to 1d`},
		{"999ms", `--lease: 999ms is out of range; give a duration from 1s to 1d`},
		{"24h1ns", `--lease: 24h1ns is out of range; give a duration from 1s to 1d`},
	}
	for _, tt := range tests {
		_, err := ParseDuration("lease", tt.in, time.Second, 24*time.Hour, false)
		if code, why, _ := Explain(err); code != ExitUsage || why != tt.why {
			t.Errorf("%q: got %d, %q, want %q", tt.in, code, why, tt.why)
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
