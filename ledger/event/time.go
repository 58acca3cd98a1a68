package event

import (
	"errors"
	"time"

	"jobledger/ledger/jsonscan"
)

const publicTime = "2006-01-02T15:04:05.000000Z"

// FormatTime returns t as people and exports see it: RFC 3339 in UTC with microseconds.
func FormatTime(t time.Time) string { return t.UTC().Format(publicTime) }

// Micros returns t as UTC microseconds since 1970, the stored form; 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros is the inverse of Micros.
func FromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func parseTime(raw string) (time.Time, error) {
	var us int64
	if len(raw) > 0 && raw[0] == '"' {
		s, err := jsonscan.Text(raw)
		if err != nil {
			return time.Time{}, err
		}
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return time.Time{}, err
		}
		us = Micros(t)
	} else {
		var err error
		if us, err = jsonscan.Int(raw); err != nil {
			return time.Time{}, err
		}
	}
	t := FromMicros(us)
	if us < firstMicros || us > lastMicros {
		return time.Time{}, errors.New("beyond the years that a time can be written in")
	}
	return t, nil
}

// The years 1 to 9999, in which RFC 3339 can write a time.
const (
	firstMicros = -62135596800_000000
	lastMicros  = 253402300799_999999
)
