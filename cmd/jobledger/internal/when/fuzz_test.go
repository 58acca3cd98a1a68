package when

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/words"
)

// A text that is accepted as a time formats to text with a zone that parses as the same time.
func FuzzParseWhen(f *testing.F) {
	for _, seed := range []string{
		"2026-05-04T10:00:00Z", "2026-05-04t10:00:00.123456789+02:00", "2026-05-04 10:00-03:30", "2026-05-04",
		"2026-05-04T10:00:00",
		"24:00", "9:30", "23:59:59", "-2h", "+1d12h", "--2h", "-", "pos:0", "pos:-1", "pos:9223372036854775808",
		"0000-01-01T00:00:00Z",
		"9999-12-31T23:59:59-23:59", "2026-02-29T00:00Z", "2026-06-30T23:59:60Z", "-106752d", "2h", "now", "",
		"\x00", "２０２６-05-04T10:00Z",
	} {
		f.Add(seed, int64(1777874400))
	}
	dated := regexp.MustCompile(`^[0-9]{4}-`)
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		now := time.Unix(seconds%250_000_000_000, 0).In(noon().Location())
		w, err := ParseWhen(text, now)
		if err != nil {
			if err.Error() == "" {
				t.Fatalf("%q: an error without text", text)
			}
			return
		}
		if dated.MatchString(text) && !zoneLast().MatchString(strings.ToUpper(text)) {
			t.Fatalf("%q has no zone and is read as %s", text, w)
		}
		if IsClockTime(text) && (w.Time.After(now) || w.Time.Before(now.AddDate(0, 0, -2))) {
			t.Fatalf("%q at %s is read as %s, which is not the last one", text, now, w)
		}
		again, err := ParseWhen(w.String(), now)
		if year := w.Time.Year(); err != nil && (w.ByPos || year >= 0 && year <= 9999) {
			t.Fatalf("%q is read as %s, which is not a time: %v", text, w, err)
		}
		if err == nil && (again.ByPos != w.ByPos || again.Pos != w.Pos ||
			!again.Time.Equal(w.Time.Truncate(time.Second))) {
			t.Fatalf("%q is read as %s, and that as %s", text, w, again)
		}
	})
}

// What Spoken reads of a time of the day is on the side that is asked for, in any zone, and what it says it
// understood is that moment.
func FuzzSpoken(f *testing.F) {
	for _, seed := range []string{"tue 02:00", "2pm yesterday", "24 dec", "dec 24 2027", "next fri noon",
		"now + 2 hours", "tomorrow - 1 day + 10m", "2026-10-25t02:30", "midnight", "feb 29", "last sun 2:30", "+",
		"today today", "12am", "+ 999999 years", "\x00", "24:00", "2pm2pm"} {
		f.Add(seed, int64(1777874400), true)
	}
	zones := []string{"Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "UTC"}
	f.Fuzz(func(t *testing.T, text string, seconds int64, next bool) {
		zone, err := time.LoadLocation(zones[uint64(seconds)%uint64(len(zones))])
		if err != nil {
			t.Skip(err)
		}
		now := time.Unix(seconds%4_000_000_000, 0).In(zone)
		h, err := Spoken(text, now, next)
		if err != nil {
			if err.Error() == "" {
				t.Fatalf("%q: an error without text", text)
			}
			return
		}
		if clock, ok := clockOf(text); ok && (h.Time.After(now) != next || h.Time.Sub(now).Abs() > 49*time.Hour) {
			t.Fatalf("%q (%s) at %s is read as %s", text, clock, now, h)
		}
		if h.As != "" && !strings.HasPrefix(h.As, h.Time.Format("Mon 2006-01-02 15:04")) {
			t.Fatalf("%q is read as %s, and said to be %s", text, h, h.As)
		}
	})
}

// A duration has a unit and no sign, is within its range, and formats to text that parses as the same
// duration.
func FuzzDurationWithin(f *testing.F) {
	for _, seed := range []string{"90s", "1h30m", "1.5h", "1d", "2d3h", "0s", "0", "10", "-5s", "+5s", "1d-5s",
		"1d0", "", "soon", "9999999999h",
		"106751d24h", "99999999999999999999d", "1e3s", "0x1p4s", "1_0s", ".s", "1ns", "١s", "1d1d",
		"2562047h47m16.854775807s"} {
		f.Add(seed, int64(time.Second), int64(24*time.Hour), false)
		f.Add(seed, int64(0), int64(0), true)
	}
	unit := regexp.MustCompile(`^([0-9.]+(d|h|m|s|ms|us|µs|μs|ns))+$`)
	f.Fuzz(func(t *testing.T, text string, lo, hi int64, zero bool) {
		lo, hi = max(lo, 0), max(hi, 0)
		d, err := DurationWithin(text, time.Duration(lo), time.Duration(hi), zero)
		if err != nil {
			if err.Error() == "" {
				t.Fatalf("%q: an error without text", text)
			}
			return
		}
		switch {
		case !unit.MatchString(text):
			t.Fatalf("%q is read as %s", text, d)
		case d == 0 && !zero, d < 0, d != 0 && d < time.Duration(lo), hi > 0 && d > time.Duration(hi):
			t.Fatalf("%q is read as %s, which is not %s", text, d, span(time.Duration(lo), time.Duration(hi), zero))
		}
		if again, err := ParseDuration(words.Duration(d)); err != nil || again != d {
			t.Fatalf("%q is %s, written %s, and that is %s, %v", text, d, words.Duration(d), again, err)
		}
	})
}
