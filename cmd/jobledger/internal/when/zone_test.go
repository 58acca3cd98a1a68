package when

import (
	"testing"
	"time"

	"jobledger/commands/cron"
)

// InUTC says what a time of UTC is here, even if only the other half of the year has another offset, and
// nothing where the clocks agree.
func TestInUTC(t *testing.T) {
	times, err := cron.Parse("30 2 * * *", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for name, want := range map[string]string{
		"Europe/Berlin":    "02:30 is 03:30 here",
		"America/New_York": "02:30 is 21:30 here",
		"Europe/London":    "02:30 on 29 May is 03:30 here",
		"Atlantic/Azores":  "02:30 is 01:30 here",
		"Africa/Abidjan":   "",
		"UTC":              "",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := InUTC(times.Next, now, zone); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if got := ZoneName(zone); got != name {
			t.Errorf("got %q, want %q", got, name)
		}
	}
	never := func(time.Time) time.Time { return time.Time{} }
	if got := InUTC(never, now, time.FixedZone("", 3600)); got != "" {
		t.Errorf("a schedule without times: %q", got)
	}
}
