package access

import (
	"cmp"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How fast one grant, or one address without a valid one, may ask.
const (
	PerSecond   = 5000 // requests of one grant, on average
	burst       = 2    // seconds of them at once
	BadAMinute  = 5    // wrong tokens from one address
	maxCounters = 4096
)

// Limits counts requests. The zero value is ready; it is safe for concurrent use.
type Limits struct {
	mu     sync.Mutex
	grants map[string]*counted
	bad    map[string]*counted
}

type counted struct {
	*rate.Limiter
	used time.Time
}

// Allow reports whether the grant with this id may make another request now. perSecond is how many it may
// make on average; 0: PerSecond.
func (l *Limits) Allow(id string, perSecond float64, now time.Time) bool {
	perSecond = cmp.Or(perSecond, PerSecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	most := int(max(1, burst*perSecond))
	return of(&l.grants, id, now, rate.Limit(perSecond), most).AllowN(now, 1)
}

// MayTry reports whether a token from this address is looked at: not after too many wrong ones.
func (l *Limits) MayTry(address string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.bad[address]
	return one == nil || one.TokensAt(now) >= 1
}

// Bad counts a wrong token from this address.
func (l *Limits) Bad(address string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of(&l.bad, address, now, rate.Every(time.Minute/BadAMinute), BadAMinute).AllowN(now, 1)
}

// of returns the counter of name. If there are too many, the one that was not used for longest goes.
func of(all *map[string]*counted, name string, now time.Time, limit rate.Limit, most int) *counted {
	if *all == nil {
		*all = make(map[string]*counted)
	}
	one := (*all)[name]
	if one == nil {
		if len(*all) >= maxCounters {
			oldest := ""
			for other, c := range *all {
				if first, ok := (*all)[oldest]; !ok || c.used.Before(first.used) {
					oldest = other
				}
			}
			delete(*all, oldest)
		}
		one = &counted{Limiter: rate.NewLimiter(limit, most)}
		(*all)[name] = one
	}
	one.used = now
	return one
}
