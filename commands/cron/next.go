package cron

import (
	"math/bits"
	"time"
)

// horizon is for how many years Next looks ahead: 29 February on a Sunday may be 40 years away.
const horizon = 60

const (
	day = 24 * 60 * 60

	// slack is how far the wall may be from UTC, with room for a change of the clock by a day.
	slack = 40 * 60 * 60
)

// Next returns the first tick after this moment, in UTC and whole seconds; the zero time if there is none in
// the next 60 years.
func (s Schedule) Next(after time.Time) time.Time {
	if s.every > 0 {
		return s.nextPeriod(after)
	}
	if s.zone == nil {
		return time.Time{}
	}
	at := after.Unix() // ticks are at whole seconds, so those after it are those after the moment
	local := after.In(s.zone)
	year, month, date := local.Year(), local.Month(), local.Day()-1 // a clock set back may show yesterday again
	if date == 0 {
		first := time.Date(year, month, 0, 0, 0, 0, 0, time.UTC)
		year, month, date = first.Year(), first.Month(), first.Day()
	}
	for end := year + horizon; year < end; {
		if s.months>>month&1 == 0 {
			year, month, date = following(year, month)
			continue
		}
		for last := daysIn(year, month); date <= last; date++ {
			midnight := time.Date(year, month, date, 0, 0, 0, 0, time.UTC)
			if !s.matches(midnight) {
				continue
			}
			tick, ok := s.first(midnight.Unix(), at)
			if !ok {
				continue
			}
			// With a clock that is set back past midnight, a tick of the next day may come before this one.
			if tomorrow := midnight.AddDate(0, 0, 1); s.matches(tomorrow) {
				if t, ok := s.first(tomorrow.Unix(), at); ok {
					tick = min(tick, t)
				}
			}
			return time.Unix(tick, 0).UTC()
		}
		year, month, date = following(year, month)
	}
	return time.Time{}
}

// following returns the first day of the month after this one.
func following(year int, m time.Month) (int, time.Month, int) {
	if m == time.December {
		return year + 1, time.January, 1
	}
	return year, m + 1, 1
}

func (s Schedule) nextPeriod(after time.Time) time.Time {
	if after.Before(s.from) {
		return s.from
	}
	period := int64(s.every / time.Second)
	passed := (after.Unix() - s.from.Unix()) / period
	return time.Unix(s.from.Unix()+(passed+1)*period, 0).UTC()
}

// matches reports whether the schedule ticks on the date of midnight, which is in UTC.
func (s Schedule) matches(midnight time.Time) bool {
	if s.months>>midnight.Month()&1 == 0 {
		return false
	}
	inMonth, inWeek := s.days>>midnight.Day()&1 != 0, s.weekdays>>midnight.Weekday()&1 != 0
	if s.eitherDay {
		return inMonth || inWeek
	}
	return inMonth && inWeek
}

// first returns the first tick after the moment at among those of one date, given as its midnight on the
// wall, read as UTC. The date matches the schedule.
func (s Schedule) first(midnight, at int64) (tick int64, ok bool) {
	if midnight+day+slack < at {
		return 0, false
	}
	around := spans(s.zone, midnight-slack, midnight+day+slack)
	if s.realTime {
		return s.firstReal(around, midnight, at)
	}
	for hours := s.hours; hours != 0; hours &= hours - 1 {
		for minutes := s.minutes; minutes != 0; minutes &= minutes - 1 {
			wall := midnight + int64(bits.TrailingZeros64(hours))*3600 + int64(bits.TrailingZeros64(minutes))*60
			if t := shown(around, wall); t > at {
				return t, true
			}
		}
	}
	return 0, false
}

// shown returns the first moment at which the wall shows this time or, where it was skipped, a later one.
func shown(around []span, wall int64) int64 {
	for _, p := range around {
		if t := max(p.start, wall-p.offset); t < p.end {
			return t
		}
	}
	return around[len(around)-1].end // not reached: the spans go far beyond the date
}

// firstReal returns the first tick after at where every real minute counts whose time on the wall matches.
func (s Schedule) firstReal(around []span, midnight, at int64) (tick int64, ok bool) {
	for _, p := range around {
		from := max(p.start, at+1) + p.offset // on the wall
		if from = max(from, midnight); from >= midnight+day {
			continue
		}
		for hour := (from - midnight) / 3600; hour < 24; hour++ {
			if s.hours>>hour&1 == 0 {
				continue
			}
			begin := midnight + hour*3600
			minutes := s.minutes
			if begin < from {
				minutes &^= 1<<((from-begin+59)/60) - 1
			}
			if minutes == 0 {
				continue
			}
			t := begin + int64(bits.TrailingZeros64(minutes))*60 - p.offset
			if t < p.end {
				return t, true
			}
			break // the span ends before it
		}
	}
	return 0, false
}
