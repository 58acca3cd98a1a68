package when

import (
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
)

func TestParseBackoff(t *testing.T) {
	for text, want := range map[string]event.Backoff{
		"min 1s, max 1h, factor 2":     event.DefaultBackoff,
		"factor 1.5":                   {Min: time.Second, Max: time.Hour, Factor: 1.5},
		" max 10m ,min 250ms":          {Min: 250 * time.Millisecond, Max: 10 * time.Minute, Factor: 2},
		"min 1d":                       {Min: 24 * time.Hour, Max: 24 * time.Hour, Factor: 2},
		"factor 1,min 30s":             {Min: 30 * time.Second, Max: time.Hour, Factor: 1},
		"min 1s,max 1s,factor 100.000": {Min: time.Second, Max: time.Second, Factor: 100},
	} {
		got, err := ParseBackoff(text)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
			continue
		}
		if again, err := ParseBackoff(words.BackoffText(got)); err != nil || again != got {
			t.Errorf("%q is shown as %q, which is %+v, %v", text, words.BackoffText(got), again, err)
		}
	}
	for text, want := range map[string]string{
		"":                       "is not a backoff, such as",
		"1s":                     "is not a backoff, such as",
		"min 1s max 1h":          "is not a backoff, such as",
		"min 1s,":                "is not a backoff, such as",
		"least 1s":               `"least" is not min, max or factor`,
		"min 1s, min 2s":         "has min twice",
		"min 10":                 `"10" has no unit`,
		"min 1us":                "is out of range",
		"max 32d":                "is out of range",
		"min 2h, max 1h":         "has a max below its min, which is 2h",
		"max 10ms":               "has a max below its min, which is 1s",
		"factor two":             `"two" is not a number`,
		"factor 0.5":             "the factor is from 1 to 100",
		"factor NaN":             "the factor is from 1 to 100",
		"factor 1.00001":         "up to three decimals",
		"min 1000000001ns":       "whole microseconds",
		"factor 2, jitter 0":     `"jitter" is not min, max or factor`,
		"min 1s, max 1h, max 1h": "has max twice",
	} {
		if got, err := ParseBackoff(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v, want an error with %q", text, got, err, want)
		}
	}
}
