package view

import (
	"time"

	"jobledger/ledger/event"
	"jobledger/projection/status"
)

// The window of a [Pace] in minutes, including the current one.
const (
	rateMinutes  = 10
	waitMinutes  = 60
	depthMinutes = 360
	depthStep    = 5
	DepthSteps   = depthMinutes / depthStep
)

// Unbounded stands for a duration above all of [MinuteEnds].
const Unbounded = time.Duration(1<<63 - 1)

// Pace is how fast a queue goes at a moment, as [Minutes] say it.
type Pace struct {
	// of the ten minutes that have passed and the one under way, or since the first one that was counted
	Since             time.Time
	For               time.Duration
	Enqueued, Claimed int64
	Succeeded, Failed int64     // attempts; one that was taken back has failed
	Waits, Runs       Quantiles // of the claims, and of those that ended, of the last hour
	From              time.Time // when Depth begins
	Depth             []int64   // jobs that were queued at the end of each step, ready or for later
	Fails             []int64   // attempts that failed or were taken back within the step
	step              time.Duration
}

// Quantiles are of durations that were counted in buckets: each is the upper end of one.
type Quantiles struct {
	Count    int64
	P50, P99 time.Duration
}

// paces returns the pace of each of queues at now, whose jobs they count at the position that m has read.
func (m *Minutes) paces(queues []status.Queue, now time.Time) map[string]*Pace {
	found := make(map[string]*Pace)
	for _, q := range queues {
		found[q.Name] = m.pace(m.queues[q.Name], q.Jobs[event.Queued], now)
	}
	return found
}

// pace is the pace of a queue with these minutes and so many queued jobs at now.
func (m *Minutes) pace(all []minute, queued int64, now time.Time) *Pace {
	last := minuteOf(event.Micros(now))
	since := func(minutes int64) time.Time {
		at := time.Unix(60*(last-minutes), 0).UTC()
		if m.from.After(at) {
			return m.from
		}
		return at
	}
	p := &Pace{Since: since(rateMinutes), From: since(depthMinutes - 1), step: depthStep * time.Minute}
	p.For = now.Sub(p.Since)
	if n := len(all); n > 0 {
		queued -= all[n-1].queued // how many there were before the first minute
	}
	first := minuteOf(event.Micros(p.From))
	steps := int(last-first)/depthStep + 1
	p.Depth, p.Fails = make([]int64, steps), make([]int64, steps)
	var waits, runs [len(MinuteEnds) + 1]int64
	i, reached := 0, 0
	for ; i < len(all) && all[i].at < first; i++ {
		reached = i + 1
	}
	for k := range steps {
		for ; i < len(all) && all[i].at < first+int64(k+1)*depthStep; i++ {
			n := &all[i]
			failed := int64(n.kinds[event.KindFailed] + n.kinds[event.KindReclaimed])
			p.Fails[k] += failed
			reached = i + 1
			if n.at >= last-rateMinutes {
				p.Enqueued += int64(n.kinds[event.KindEnqueued])
				p.Claimed += int64(n.kinds[event.KindClaimed])
				p.Succeeded += int64(n.kinds[event.KindSucceeded])
				p.Failed += failed
			}
			if n.at >= last-waitMinutes {
				n.waits.addTo(&waits)
				n.runs.addTo(&runs)
			}
		}
		p.Depth[k] = queued
		if reached > 0 {
			p.Depth[k] += all[reached-1].queued
		}
	}
	p.Waits, p.Runs = quantiles(&waits), quantiles(&runs)
	return p
}

// StepAt is when a step of Depth begins.
func (p *Pace) StepAt(i int) time.Time { return p.From.Add(time.Duration(i) * p.step) }

// ClearIn returns in what time the ready jobs are claimed where claims and new jobs go on as now; ok is false
// where they never are.
func (p *Pace) ClearIn(ready int64) (d time.Duration, ok bool) {
	gain := p.Claimed - p.Enqueued
	if gain <= 0 {
		return 0, false
	}
	return time.Duration(float64(ready) / float64(gain) * float64(p.For)), true
}

// Share is the share of the attempts of the Pace that failed; ok is false if there were no attempts.
func (p *Pace) Share() (share float64, ok bool) {
	n := p.Succeeded + p.Failed
	return float64(p.Failed) / float64(max(n, 1)), n > 0
}

// PerMinute is n of the Pace as a rate.
func (p *Pace) PerMinute(n int64) float64 {
	return float64(n) / max(p.For.Minutes(), 1.0/60)
}

func (d durations) addTo(all *[len(MinuteEnds) + 1]int64) {
	for _, c := range d {
		all[c.bucket] += int64(c.n)
	}
}

func quantiles(all *[len(MinuteEnds) + 1]int64) (q Quantiles) {
	for _, n := range all {
		q.Count += n
	}
	at := func(percent int64) time.Duration {
		var below int64
		for i, n := range all {
			if below += n; n > 0 && below*100 >= q.Count*percent {
				if i == len(MinuteEnds) {
					return Unbounded
				}
				return MinuteEnds[i]
			}
		}
		return 0
	}
	q.P50, q.P99 = at(50), at(99)
	return q
}
