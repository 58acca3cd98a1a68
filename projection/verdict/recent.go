package verdict

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"jobledger/ledger/event"
	"jobledger/projection/follow"
)

// How finely [Recent] keeps what happened. Older than fine, the numbers are kept in spans of coarse minutes.
const (
	fine   = 75 // minutes
	coarse = 30 // minutes
	reach  = 24 * 60

	mostSpans = fine + reach/coarse + 25 // of a queue, before some are merged
)

// Reach is how far back the rules look.
const Reach = reach * time.Minute

// Recent counts what each queue did, from some time ago on. It is fed transition by transition, so that it
// shares the pass of another reader. What it holds grows with the queues, by about 150 spans each at most.
// The zero value is ready.
type Recent struct {
	Since  time.Time // what happened since then counts
	Part   bool      // more happened in the day, which was not read
	queues map[string][]span
}

// span is what happened in a queue within some minutes.
type span struct {
	at, minutes int64 // its first minute, since 1970; how many there are
	counts
	waits    [waitBuckets]uint32 // claims, by how long the job had been ready
	versions []versionCount      // of the workers whose attempts ended
	jobs     []int64             // some of the jobs of which attempts failed, each once
}

// someJobs is how many jobs with failures a span names: enough to know that they are several.
const someJobs = 8

// counts are what happened, by number.
type counts struct {
	arrived int64 // jobs that became queued
	claimed int64
	ended   int64 // attempts that succeeded, failed or were lost
	failed  int64 // of these, that did not succeed
	lost    int64 // of these, that were taken back from their worker
	gaveUp  int64 // jobs that failed for good, without those that were retried since
	done    int64 // jobs that succeeded
}

type versionCount struct {
	version       string
	ended, failed int64
}

// waitBuckets is how many buckets waits have: each is twice as wide as the one before, from a millisecond on.
const waitBuckets = 32

func minuteOf(t time.Time) int64 { return event.Micros(t) / int64(time.Minute/time.Microsecond) }

// Add adds the next transition; version is that of the worker of an attempt that ends.
func (r *Recent) Add(t *follow.Transition, version string) {
	if r.queues == nil {
		r.queues = make(map[string][]span)
	}
	at := t.At / int64(time.Minute/time.Microsecond)
	all := r.queues[t.Queue]
	if n := len(all); n == 0 || all[n-1].at+all[n-1].minutes <= at {
		all = append(r.shrink(all, at), span{at: at, minutes: 1})
		r.queues[t.Queue] = all
	}
	now := &all[len(all)-1]
	if t.To == event.Queued && t.From != event.Queued {
		now.arrived++
	}
	if t.From == event.FailedState && t.To != event.FailedState {
		now.gaveUp--
	}
	switch t.Kind {
	case event.KindClaimed:
		now.claimed++
		if t.Wait >= 0 {
			now.waits[min(bits.Len64(uint64(t.Wait/1000)), waitBuckets-1)]++
		}
		return
	case event.KindSucceeded:
		now.ended++
		now.done++
	case event.KindReclaimed:
		now.lost++
		fallthrough
	case event.KindFailed:
		now.ended++
		now.failed++
		if len(now.jobs) < someJobs && !slices.Contains(now.jobs, t.N) {
			now.jobs = append(now.jobs, t.N)
		}
		if t.To == event.FailedState {
			now.gaveUp++
		}
	default:
		return
	}
	failed := int64(0)
	if t.Kind != event.KindSucceeded {
		failed = 1
	}
	now.addVersion(version, 1, failed)
}

func (s *span) addVersion(version string, ended, failed int64) {
	i := slices.IndexFunc(s.versions, func(v versionCount) bool { return v.version == version })
	if i < 0 {
		i = len(s.versions)
		s.versions = append(s.versions, versionCount{version: version})
	}
	s.versions[i].ended += ended
	s.versions[i].failed += failed
}

// shrink merges the older ones of spans that have become many; at is the minute of the next one. It follows
// a grid of whole coarse minutes, as [course.before] does, so that it changes no answer.
func (r *Recent) shrink(all []span, at int64) []span {
	if len(all) < mostSpans {
		return all
	}
	kept := make([]span, 0, mostSpans)
	for i := range all {
		s := &all[i]
		switch n := len(kept); {
		case s.at/coarse < (at-reach)/coarse-1:
		case n > 0 && s.at < at-fine && s.at/coarse == kept[n-1].at/coarse:
			kept[n-1].merge(s)
		default:
			kept = append(kept, *s)
		}
	}
	return kept
}

// merge adds a later span.
func (s *span) merge(o *span) {
	s.minutes = o.at + o.minutes - s.at
	s.counts.add(o.counts)
	s.jobs = nil
	for i, n := range o.waits {
		s.waits[i] += n
	}
	for _, v := range o.versions {
		s.addVersion(v.version, v.ended, v.failed)
	}
}

func (c *counts) add(o counts) {
	c.arrived += o.arrived
	c.claimed += o.claimed
	c.ended += o.ended
	c.failed += o.failed
	c.lost += o.lost
	c.gaveUp += o.gaveUp
	c.done += o.done
}

// of returns what a queue did, for a question about a moment.
func (r *Recent) of(queue string, now time.Time) course {
	c := course{now: minuteOf(now)}
	if r != nil {
		c.since, c.part, c.spans = minuteOf(r.Since), r.Part, r.queues[queue]
	}
	return c
}

// course is what one queue did up to a minute.
type course struct {
	now, since int64
	part       bool
	spans      []span
}

// last adds up the last minutes, with the one under way.
func (c course) last(minutes int64) (sum counts) {
	for i := len(c.spans) - 1; i >= 0 && c.spans[i].at > c.now-minutes; i-- {
		sum.add(c.spans[i].counts)
	}
	return sum
}

// failedJobs returns how many jobs had failures in the last minutes, of many some.
func (c course) failedJobs(minutes int64) int {
	var jobs []int64
	for i := len(c.spans) - 1; i >= 0 && c.spans[i].at > c.now-minutes; i-- {
		for _, n := range c.spans[i].jobs {
			if !slices.Contains(jobs, n) {
				jobs = append(jobs, n)
			}
		}
	}
	return len(jobs)
}

// before returns the spans that show what is normal: those that ended at least so many minutes ago.
func (c course) before(minutes int64) []span {
	n := len(c.spans)
	for n > 0 && c.spans[n-1].at+c.spans[n-1].minutes > c.now-minutes {
		n--
	}
	first := 0
	for first < n && c.spans[first].at/coarse < (c.now-reach)/coarse {
		first++
	}
	return c.spans[first:n]
}

// normal returns the spans before the last hour, in which what is wrong now may have begun, if so many
// attempts ended in them; else those before the last ten minutes.
func (c course) normal(enough int64) []span {
	hour := c.before(60)
	if sum(hour).ended >= enough {
		return hour
	}
	return c.before(10)
}

// without adds up what of returns of spans, half an hour at a time, and leaves out the worst quarter, or two,
// where so large a share failed: an earlier outage is not normal.
func without(spans []span, part float64, of func(*span) counts) (total counts) {
	var each []counts
	grid := int64(-1)
	for i := range spans {
		if at := spans[i].at / coarse; at != grid {
			each, grid = append(each, counts{}), at
		}
		each[len(each)-1].add(of(&spans[i]))
	}
	each = slices.DeleteFunc(each, func(c counts) bool { return c.ended == 0 }) // they have no share
	slices.SortFunc(each, func(a, b counts) int { return cmp.Compare(a.failed*b.ended, b.failed*a.ended) })
	worst := max(len(each)/4, min(2, len(each)-1)) // an outage of half an hour is in two of them
	for i, c := range each {
		if i < len(each)-worst || float64(c.failed) < part*float64(c.ended) {
			total.add(c)
		}
	}
	return total
}

func sum(spans []span) (total counts) {
	for i := range spans {
		total.add(spans[i].counts)
	}
	return total
}

// normalWait returns how long the claims of a queue wait at most, most of the time: of each half an hour with
// claims what 99 of 100 had waited, and of these what three quarters do not exceed. So it is hardly moved by
// what went wrong within the day. n is how many claims there were.
func normalWait(spans []span) (d time.Duration, n int64) {
	var each []time.Duration
	for i := 0; i < len(spans); {
		var waits [waitBuckets]uint32
		claims, grid := int64(0), spans[i].at/coarse
		for ; i < len(spans) && spans[i].at/coarse == grid; i++ {
			for k, count := range spans[i].waits {
				waits[k] += count
				claims += int64(count)
			}
		}
		below := int64(0)
		for k, count := range waits {
			if below += int64(count); count > 0 && below*100 >= claims*99 {
				each = append(each, time.Duration(1<<k)*time.Millisecond)
				break
			}
		}
		n += claims
	}
	if len(each) == 0 {
		return 0, 0
	}
	slices.Sort(each)
	return each[len(each)*3/4], n
}
