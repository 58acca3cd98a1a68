package door

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// requests counts answers.
type requests struct {
	mu    sync.Mutex
	n     map[Answered]int64
	times map[string]Durations
}

// Answered is what answers are counted by.
type Answered struct {
	Route  string // the pattern; "refused" where the request got to none
	Status int
}

// Buckets are the ends of the intervals of [Durations], in seconds.
var Buckets = [...]float64{0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 30}

// Durations count answers by how long they took, a stream up to its end. The last count has the requests that
// took longer than all of [Buckets].
type Durations struct {
	Counts [len(Buckets) + 1]int64
	Sum    float64 // seconds
}

func (q *requests) add(route string, status int, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == nil {
		q.n, q.times = make(map[Answered]int64), make(map[string]Durations)
	}
	q.n[Answered{route, status}]++
	d, seconds := q.times[route], took.Seconds()
	i, _ := slices.BinarySearch(Buckets[:], seconds)
	d.Counts[i]++
	d.Sum += seconds
	q.times[route] = d
}

// Answers returns how many answers there were since the server was started.
func (d *Door) Answers() map[Answered]int64 {
	d.requests.mu.Lock()
	defer d.requests.mu.Unlock()
	return maps.Clone(d.requests.n)
}

// Durations returns how long the answers since the start of the server took, by route.
func (d *Door) Durations() map[string]Durations {
	d.requests.mu.Lock()
	defer d.requests.mu.Unlock()
	return maps.Clone(d.requests.times)
}
