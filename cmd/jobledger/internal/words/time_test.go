package words

import (
	"testing"
	"time"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

func TestAge(t *testing.T) {
	tests := []struct {
		ago  time.Duration
		want string
	}{
		{0, "0s ago"},
		{300 * time.Millisecond, "0s ago"},
		{3*time.Minute + 12*time.Second + time.Millisecond, "3m12s ago"},
		{2*time.Hour + 59*time.Second, "2h ago"},
		{2*time.Hour + 5*time.Minute + 59*time.Second, "2h5m ago"},
		{99*time.Hour + time.Minute, "4d3h ago"},
		{24 * time.Hour, "1d ago"},
		{2400*time.Hour + 23*time.Hour, "100d ago"},
		{-90 * time.Second, "in 1m30s"},
	}
	for _, tt := range tests {
		if got := Age(noon().Add(-tt.ago), noon()); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.ago, got, tt.want)
		}
	}
}

// noon is a Monday in a zone whose offset is never a whole number of hours.
func noon() time.Time {
	return time.Date(2026, 5, 4, 12, 0, 0, 0, time.FixedZone("", 5*3600+45*60))
}
