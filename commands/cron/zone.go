package cron

import (
	"sort"
	"strings"
	"time"
	_ "time/tzdata" // zones on machines that have no database of them
)

// Zone returns the time zone with this IANA name, such as Europe/Berlin; the empty name is UTC. It never
// returns the machine's own zone: the same schedule must mean the same everywhere.
func Zone(name string) (*time.Location, error) {
	if strings.EqualFold(name, "local") {
		return nil, &SyntaxError{"time zone", name, "the name of a place, such as Europe/Berlin, or UTC"}
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, &SyntaxError{"time zone", name, "an IANA name such as Europe/Berlin, or UTC"}
	}
	return zone, nil
}

// span is a window of real time in which a zone's offset does not change. All are seconds since 1970.
type span struct {
	start, end int64 // end is not part of it
	offset     int64 // what the wall shows is start + offset, read as UTC
}

// probe is the distance in seconds at which offsets are compared: no zone changes its clocks twice in it.
const probe = 2 * 60 * 60

// spans returns the spans that real time from start to end consists of. It compares offsets, because
// Time.ZoneBounds returns ends in the past for some zones in leap years from 2040 on.
func spans(zone *time.Location, start, end int64) []span {
	found := []span{{start, end, offset(zone, start)}}
	for t := start; t < end; t += probe {
		until := min(t+probe, end)
		last := &found[len(found)-1]
		after := offset(zone, until)
		if after == last.offset {
			continue
		}
		change := t + 1 + int64(sort.Search(int(until-t-1), func(i int) bool {
			return offset(zone, t+1+int64(i)) != last.offset
		}))
		last.end = change
		if change < end {
			found = append(found, span{change, end, after})
		}
	}
	return found
}

func offset(zone *time.Location, at int64) int64 {
	_, seconds := time.Unix(at, 0).In(zone).Zone()
	return int64(seconds)
}
