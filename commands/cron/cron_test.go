package cron_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"jobledger/commands/cron"
	_ "jobledger/ledger/ledgertest"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := cron.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func moment(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestNextOnNightsOfTheClock lists what other libraries were found to get wrong. Times are as on the wall.
func TestNextOnNightsOfTheClock(t *testing.T) {
	for _, c := range []struct{ name, cron, zone, after, want string }{
		{"spring: a skipped time ticks after the gap", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			"2026-03-29T03:00+02:00 2026-03-30T02:30+02:00"},
		{"autumn: a doubled time ticks once", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			"2026-10-25T02:30+02:00 2026-10-26T02:30+01:00"},
		{"spring: real minutes", "*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z",
			"2026-03-29T01:30+01:00 2026-03-29T03:00+02:00 2026-03-29T03:30+02:00"},
		{"autumn: real minutes", "*/30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z",
			"2026-10-25T02:00+02:00 2026-10-25T02:30+02:00 2026-10-25T02:00+01:00 2026-10-25T02:30+01:00 " +
				"2026-10-25T03:00+01:00"},
		{"every two hours is real time too", "0 */2 * * *", "Europe/Berlin", "2026-03-28T23:30:00Z",
			"2026-03-29T04:00+02:00 2026-03-29T06:00+02:00"},
		{"several skipped times tick once", "0,15,45 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			"2026-03-29T03:00+02:00 2026-03-29T03:15+02:00 2026-03-29T03:45+02:00"},
		{"midnight is skipped in São Paulo", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z",
			"2018-11-04T01:00-02:00 2018-11-05T00:00-02:00"},
		{"midnight is skipped in Beirut", "@daily", "Asia/Beirut", "2024-03-30T12:00:00Z",
			"2024-03-31T01:00+03:00 2024-04-01T00:00+03:00"},
		{"São Paulo shows an hour of yesterday again", "30 23 * * *", "America/Sao_Paulo",
			"2018-02-17T12:00:00Z", "2018-02-17T23:30-02:00 2018-02-18T23:30-03:00"},
		{"São Paulo shows an hour of yesterday again, in real minutes", "30 * * * *", "America/Sao_Paulo",
			"2018-02-18T01:00:00Z", "2018-02-17T23:30-02:00 2018-02-17T23:30-03:00 2018-02-18T00:30-03:00"},
		{"a day that Apia left out", "0 2 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z",
			"2011-12-31T00:00+14:00 2012-12-30T02:00+14:00"},
		{"each day in Apia", "0 2 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z",
			"2011-12-29T02:00-10:00 2011-12-31T00:00+14:00 2011-12-31T02:00+14:00 2012-01-01T02:00+14:00"},
		{"Lord Howe moves by half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			"2026-10-04T02:30+11:00 2026-10-05T02:15+11:00"},
		{"Lord Howe doubles half an hour", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
			"2026-04-05T01:45+11:00 2026-04-06T01:45+10:30"},
		{"St John's changed a minute after midnight", "@daily", "America/St_Johns", "2008-11-01T12:00:00Z",
			"2008-11-02T00:00-02:30 2008-11-03T00:00-03:30"},
		{"St John's shows yesterday again", "0 * * * *", "America/St_Johns", "2008-11-02T02:15:00Z",
			"2008-11-02T00:00-02:30 2008-11-02T00:00-03:30 2008-11-02T01:00-03:30"},
		{"Chile at the end of a leap year", "0 0 1 * *", "Chile/Continental", "2040-12-30T12:00:00Z",
			"2041-01-01T00:00-03:00 2041-02-01T00:00-03:00"},
		{"29 February", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00Z 2108-02-29T00:00Z"},
		{"the 13th or a Friday", "0 0 13 * fri", "UTC", "2026-11-01T00:00:00Z",
			"2026-11-06T00:00Z 2026-11-13T00:00Z 2026-11-20T00:00Z"},
		{"7 is Sunday", "0 0 * * 7", "UTC", "2026-11-01T00:00:00Z", "2026-11-08T00:00Z"},
		{"a weekend", "0 0 * * sat-sun", "UTC", "2026-11-01T00:00:00Z", "2026-11-07T00:00Z 2026-11-08T00:00Z"},
		{"a weekend by numbers", "0 0 * * 6-0", "UTC", "2026-11-01T00:00:00Z",
			"2026-11-07T00:00Z 2026-11-08T00:00Z"},
		{"* in the minute, doubled hour", "*/15 0-5 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z",
			"2026-10-25T02:45+02:00 2026-10-25T02:00+01:00 2026-10-25T02:15+01:00"},
		{"* in the minute, skipped hour", "*/30 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z",
			"2026-03-30T02:00+02:00 2026-03-30T02:30+02:00"},
		{"names and steps", "0 9-17/4 1-7 jan,JUL Mon", "UTC", "2026-01-01T09:00:00Z",
			"2026-01-01T13:00Z 2026-01-01T17:00Z 2026-01-02T09:00Z"},
		{"a tick is after, never at", "0 0 * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-02T00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := cron.Parse(c.cron, zone(t, c.zone))
			if err != nil {
				t.Fatal(err)
			}
			at, got := moment(t, c.after), []string(nil)
			for range strings.Fields(c.want) {
				at = s.Next(at)
				got = append(got, at.In(zone(t, c.zone)).Format("2006-01-02T15:04Z07:00"))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, " "), c.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *",
		"* * 32 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *", "*/61 * * * *", "5/15 * * * *", "5-1 * * * *",
		"* * * * fri-mon", "0 0 31 feb *", "0 0 30-31 2 *", "0 0 31 4,6,9,11 *", "TZ=", "CRON_TZ=UTC",
		"TZ=UTC 0 0 * * *", "@every 5m", "@reboot", "@", "+5 * * * *", "-5 * * * *", "1,,2 * * * *",
		"? * * * *", "0 0 L * *", "0 0 * * mon#2", "0 0 * * 1-", "0 0 * foo *", "0x5 * * * *", "005 * * * *",
		"*-5 * * * *", "*/ * * * *", "1-2-3 * * * *", "*/1/2 * * * *"} {
		_, err := cron.Parse(text, time.UTC)
		if bad := (*cron.SyntaxError)(nil); !errors.As(err, &bad) {
			t.Errorf("%q: got %v, want a SyntaxError", text, err)
		}
	}
	for _, name := range []string{"Local", "local", "Europe/Nowhere", "../etc/passwd"} {
		if _, err := cron.Zone(name); err == nil {
			t.Errorf("zone %q: got no error", name)
		}
	}
	for _, d := range []time.Duration{0, -time.Second, time.Millisecond, 1500 * time.Millisecond, 1 << 62} {
		if _, err := cron.Every(d, time.Unix(0, 0)); err == nil {
			t.Errorf("period %s: got no error", d)
		}
	}
}

func TestParseNamesWhatToWrite(t *testing.T) {
	for text, want := range map[string]string{"0 0 * * Monday": `"mon"`, "0 0 1 September *": `"sep"`,
		"0 23-7 * * *": "23,0-7", "0 22-6 * * *": "22-23,0-6", "0 0 * * 5-1": "5-6,0-1",
		"0 0 * 11-2 *": "11-12,1-2"} {
		if _, err := cron.Parse(text, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error that says %s", text, err, want)
		}
	}
}

func TestEveryIsAligned(t *testing.T) {
	from := moment(t, "2026-11-22T10:00:07Z")
	s, err := cron.Every(90*time.Second, from.Add(300*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ after, want time.Duration }{{-time.Hour, 0}, {-1, 0}, {0, 90 * time.Second},
		{89 * time.Second, 90 * time.Second}, {90 * time.Second, 180 * time.Second},
		{time.Hour + time.Second, time.Hour + 90*time.Second}} {
		if got := s.Next(from.Add(c.after)).Sub(from); got != c.want {
			t.Errorf("after %s: got %s, want %s", c.after, got, c.want)
		}
	}
	if next := (cron.Schedule{}).Next(from); !next.IsZero() {
		t.Errorf("the zero Schedule ticks at %s", next)
	}
}
