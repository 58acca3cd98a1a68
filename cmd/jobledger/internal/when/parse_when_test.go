package when

import (
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
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
		{"pos:42@2026-05-04T10:00:00.25+02:00", "pos:42@2026-05-04T08:00:00.25Z"},
	}
	for _, tt := range tests {
		w, err := ParseWhen(tt.in, noon())
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		got := words.JSONTime(w.Time)
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
		{"2026-02-30T10:00:00Z", "is not a time"},
		{"24:00", "is not a time"},
		{"12:60", "is not a time"},
		{"", "is not a time"},
		{"yesterday", "is not a time"},
		{"2h", "could be past or future: put - or + in front"},
		{"-2", "is not a time from now: has no unit"},
		{"--2h", "is not a time from now: is negative"},
		{"-", "is not a time from now: is not a duration"},
		{"pos:", "is not pos: and a whole number"},
		{"pos:-1", "is not pos: and a whole number"},
		{"pos:@2026-05-04T10:00:00Z", "is not pos: and a whole number"},
		{"pos:1@", "has after @ no time such as 2026-05-04T15:04:05Z"},
		{"pos:1@-2h", "has after @ no time such as 2026-05-04T15:04:05Z"},
		{"pos:9223372036854775808", "is not pos: and a whole number"},
	}
	for _, tt := range tests {
		_, err := ParseWhen(tt.in, noon())
		if err == nil || err.Error() != tt.why {
			t.Errorf("%q: got %v, want %q", tt.in, err, tt.why)
		}
	}
}

// noon is a Monday in a zone whose offset is never a whole number of hours.
func noon() time.Time {
	return time.Date(2026, 5, 4, 12, 0, 0, 0, time.FixedZone("", 5*3600+45*60))
}

// The times in tables can be used as input.
func TestParseWhenReadsFormattedTimes(t *testing.T) {
	for _, at := range []time.Time{noon(), noon().UTC()} {
		w, err := ParseWhen(words.Time(at), noon())
		if err != nil || !w.Time.Equal(at) {
			t.Errorf("%s: got %s, %v", words.Time(at), w, err)
		}
	}
}

func TestParseNextClockTimeIsNext(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skipf("no database of time zones: %v", err)
	}
	tests := []struct{ now, text, want string }{
		{"2026-05-04T10:15:00+02:00", "10:16", "2026-05-04T10:16:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "10:15", "2026-05-05T10:15:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "10:14:59", "2026-05-05T10:14:59+02:00"},
		{"2026-05-04T10:15:00+02:00", "+10m", "2026-05-04T10:25:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "-10m", "2026-05-04T10:05:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "2026-05-04T01:00:00Z", "2026-05-04T03:00:00+02:00"},
		{"2026-03-29T01:00:00+01:00", "02:30", "2026-03-29T03:00:00+02:00"}, // does not exist on that day
		{"2026-03-29T12:00:00+02:00", "02:30", "2026-03-30T02:30:00+02:00"},
		{"2026-03-28T12:00:00+01:00", "11:00", "2026-03-29T11:00:00+02:00"},
		{"2026-10-24T12:00:00+02:00", "13:00", "2026-10-24T13:00:00+02:00"},
	}
	for _, tt := range tests {
		now, _ := time.Parse(time.RFC3339, tt.now)
		got, err := ParseNext(tt.text, now.In(zone))
		if err != nil || got.In(zone).Format(time.RFC3339) != tt.want {
			t.Errorf("%s at %s: got %v, %v, want %s", tt.text, tt.now, got, err, tt.want)
		}
	}
}
