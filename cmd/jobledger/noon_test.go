package main

import "time"

// noon is a Monday in a zone that has a whole number of hours in no season.
func noon() time.Time {
	return time.Date(2026, 5, 4, 12, 0, 0, 0, time.FixedZone("", 5*3600+45*60))
}
