package verdict

import (
	"math"
	"time"

	"jobledger/projection/status"
)

// Thresholds of what fails.
const (
	window = 10 // minutes: long enough for a share of a slow queue, short enough that an end is seen
	quick  = 3  // minutes, with the one under way: an outage of a busy queue is seen within the first

	few      = 10  // failures, of a smaller share
	fewest   = 5   // attempts: of fewer, a share says nothing
	several  = 3   // jobs failed, or 2 where none succeeded: not one that is retried again and again
	most     = 0.5 // of the attempts failed: the queue does not do its work
	many     = 0.2 // a fifth: worth a look in any queue
	times    = 3   // as large as before: something has changed
	compared = 20  // attempts: on each side of a comparison

	// How large a share of failures is taken for normal at most. A queue in which a fifth fails day after day
	// is not well, however normal that is.
	mostNormal = 0.1
	// The rates that count as normal if nothing is known: some failures are normal.
	newNormal = 0.05
	// How probable it may be that chance explains a number of failures. There are about ten queues, and a new
	// window every few minutes: a thousand looks a day, and one wrong answer in a hundred days is allowed.
	chance = 1e-5
	// The same for a new version, of which there are a few a day.
	chanceOfVersion = 1e-4
)

// unlikely reports whether so many failures, or more, are less probable than p where so many are expected. It
// is the tail of Poisson's distribution.
func unlikely(failures int64, expected, p float64) bool {
	if float64(failures) <= expected {
		return false
	}
	below, term := 0.0, math.Exp(-expected)
	for i := range failures {
		below += term
		term *= expected / float64(i+1)
	}
	return 1-below < p
}

// share is failed divided by ended, with one added to each kind, so that few attempts do not give 0.
func share(c counts) float64 { return float64(c.failed+1) / float64(c.ended+2) }

// atMost is the share that may be normal where so many failed: what two standard deviations more would be.
func atMost(c counts) float64 {
	return (float64(c.failed+1) + 2*math.Sqrt(float64(c.failed+1))) / float64(c.ended+2)
}

// ofCourse returns what stands out in what a queue did.
func (f Facts) ofCourse(q status.Queue) (found []Problem) {
	if f.Recent == nil {
		return nil
	}
	c := f.Recent.of(q.Name, f.At)
	for _, rule := range []func(status.Queue, course) *Problem{f.failing, f.version, f.gaveUp, f.lost,
		f.behind} {
		if p := rule(q, c); p != nil {
			p.Queue = q.Name
			found = append(found, *p)
		}
	}
	if len(found) > 1 && found[0].Code == Failing && found[1].Code == Version &&
		float64(found[0].Failed) < many*float64(found[0].Attempts) { // the version is what there is to say
		found = found[1:]
		found[0].Also = append(found[0].Also, Failing)
	}
	return found
}

// failing finds a queue whose attempts fail.
func (f Facts) failing(_ status.Queue, c course) *Problem {
	normal, before := newNormal, -1.0
	past := without(c.normal(compared), many, func(s *span) counts { return s.counts })
	if past.ended >= compared {
		before = float64(past.failed) / float64(past.ended)
		normal = atMost(past)
	}
	base := min(normal, mostNormal)
	var p *Problem
	for _, minutes := range []int64{quick, window} {
		sum := c.last(minutes)
		part := float64(sum.failed) / float64(max(sum.ended, 1))
		more := before >= 0 && part >= times*before && sum.failed >= few &&
			unlikely(sum.failed, normal*float64(sum.ended), chance)
		jobs := c.failedJobs(minutes)
		if sum.ended == sum.failed {
			jobs++
		}
		if sum.ended < fewest || jobs < several || part < many && !more ||
			!unlikely(sum.failed, base*float64(sum.ended), chance) {
			continue
		}
		level := Warning
		if part >= most {
			level = Trouble
		}
		if p == nil || level > p.Level {
			p = &Problem{Code: Failing, Level: level, Attempts: sum.ended, Failed: sum.failed, Minutes: minutes,
				Before: before, Since: c.began(max(many/2, 2*normal), window)}
		}
	}
	return p
}

// began returns when the attempts of c began to fail in so large a share, without a pause of so many minutes.
func (c course) began(part float64, pause int64) (since time.Time) {
	first := c.now
	for i := len(c.spans) - 1; i >= 0 && c.spans[i].at+c.spans[i].minutes >= first-pause; i-- {
		s := &c.spans[i]
		if s.failed > 0 && float64(s.failed) >= part*float64(s.ended) {
			first = s.at
		}
	}
	return time.Unix(60*first, 0).UTC()
}

// version finds a version of the workers that fails more often than those before it: all the time since it
// came, so that an outage which it met later is not its fault.
func (f Facts) version(_ status.Queue, c course) *Problem {
	last, newest, first := "", "", int64(0)
	seen := make(map[string]bool)
	for i := range c.spans {
		for _, v := range c.spans[i].versions {
			if !seen[v.version] {
				seen[v.version] = true
				last, newest, first = newest, v.version, c.spans[i].at
			}
		}
	}
	if len(seen) < 2 || first <= c.now-reach {
		return nil
	}
	before := without(c.spans, many, func(s *span) (old counts) {
		for _, v := range s.versions {
			if v.version != newest {
				old.ended, old.failed = old.ended+v.ended, old.failed+v.failed
			}
		}
		return old
	})
	var since, part counts
	normal, from, bad := share(before), first, int64(0) // minutes
	for i := range c.spans {
		for _, v := range c.spans[i].versions {
			if v.version == newest {
				since.ended, since.failed = since.ended+v.ended, since.failed+v.failed
				part.ended, part.failed = part.ended+v.ended, part.failed+v.failed
			}
		}
		if part.ended >= compared {
			until := c.spans[i].at + c.spans[i].minutes
			if float64(part.failed) >= times/2.0*normal*float64(part.ended) {
				bad += until - from
			}
			part, from = counts{}, until
		}
	}
	recent := c.last(window)
	if before.ended < compared || since.ended < compared || 3*bad < 2*(from-first) ||
		float64(since.failed) < times*normal*float64(since.ended) ||
		!unlikely(since.failed, atMost(before)*float64(since.ended), chanceOfVersion) ||
		// A queue has recovered if its last attempts fail as seldom as before.
		recent.ended >= compared && float64(recent.failed) < times/2.0*normal*float64(recent.ended) {
		return nil
	}
	return &Problem{Code: Version, Level: Warning, From: last, To: newest, Attempts: since.ended,
		Failed: since.failed, Since: time.Unix(60*first, 0).UTC(),
		Before: float64(before.failed) / float64(before.ended)}
}

// Thresholds of jobs that failed for good.
const (
	severalGaveUp = 3    // of a queue within an hour; one of many may have had bad input
	seldom        = 20   // jobs a day: of a queue with fewer each one matters
	normalGaveUp  = 0.02 // of the jobs of a queue may fail for good where nothing else is known
)

// gaveUp finds jobs that failed for good within an hour, unless so many do normally.
func (f Facts) gaveUp(_ status.Queue, c course) *Problem {
	hour := c.last(60)
	if hour.gaveUp <= 0 {
		return nil
	}
	p := &Problem{Code: GaveUp, Level: Note, Jobs: hour.gaveUp, Minutes: 60}
	for i := len(c.spans) - 1; i >= 0 && c.spans[i].at > c.now-60; i-- {
		if c.spans[i].gaveUp > 0 {
			p.Since = time.Unix(60*c.spans[i].at, 0).UTC()
		}
	}
	past := sum(c.before(60))
	normal := normalGaveUp
	if past.done+past.gaveUp >= compared {
		normal = max(normal, float64(past.gaveUp+1)/float64(past.done+past.gaveUp+2))
	}
	known := c.now-c.since >= 60
	all := hour.done + hour.gaveUp + past.done + max(past.gaveUp, 0)
	if known && all < seldom && past.gaveUp <= 0 || hour.gaveUp >= severalGaveUp &&
		unlikely(hour.gaveUp, normal*float64(hour.done+hour.gaveUp), chanceOfVersion) {
		p.Level = Warning
	}
	return p
}

// lost finds attempts whose leases ran out, so that the jobs were taken back: their worker died or froze.
func (f Facts) lost(_ status.Queue, c course) *Problem {
	sum := c.last(window)
	if sum.lost == 0 {
		return nil
	}
	p := &Problem{Code: Lost, Level: Warning, Jobs: sum.lost, Minutes: window}
	for i := len(c.spans) - 1; i >= 0 && c.spans[i].at > c.now-window; i-- {
		if c.spans[i].lost > 0 {
			p.Since = time.Unix(60*c.spans[i].at, 0).UTC()
		}
	}
	return p
}
