package print

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection"
)

// ClaimPairs are the names and values by which people see a job that was claimed, with times in zone.
func ClaimPairs(j projection.Job, zone *time.Location) [][2]string {
	var tags []string
	for name, value := range j.Tags {
		tags = append(tags, name+"="+value)
	}
	slices.Sort(tags)
	return [][2]string{
		{"job", string(j.ID)},
		{"token", j.Token},
		{"lease", fmt.Sprintf("until %s (%s)", words.Time(j.LeaseUntil.In(zone)),
			words.Duration(j.LeaseUntil.Sub(j.ClaimedAt)))},
		{"queue", j.Queue},
		{"key", j.Key},
		{"tags", strings.Join(tags, " ")},
		{"attempt", fmt.Sprintf("%d (failures %d of %d)", j.Attempt, j.Failures, j.MaxAttempts)},
		{"payload", readablePayload(j.Payload)},
	}
}

// readablePayload is the payload, or its beginning if it is long; --json has all of it.
func readablePayload(b []byte) string {
	const most = 1000
	switch {
	case len(b) == 0:
		return "(empty)"
	case !utf8.Valid(b):
		return fmt.Sprintf("(%s, not text)", words.Count(int64(len(b)), "byte"))
	case len(b) > most:
		return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(string(b[:most]), ""), len(b))
	}
	return string(b)
}
