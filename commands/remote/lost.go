package remote

import (
	"context"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// lostFor is how long after a request without an answer its claims are looked for. A request that was sent
// can reach the server only so late.
const lostFor = 2 * time.Minute

// lost are the tokens of claims that were asked for and not answered, by the boot of the process.
type lost struct {
	mu  sync.Mutex
	all map[string]map[string]time.Time // when the request was given up; zero: it is under way
}

func (l *lost) begin(boot string, tokens []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = make(map[string]map[string]time.Time)
	}
	if l.all[boot] == nil {
		l.all[boot] = make(map[string]time.Time)
	}
	for _, token := range tokens {
		l.all[boot][token] = time.Time{}
	}
}

// unanswered takes in that the request was given up.
func (l *lost) unanswered(boot string, tokens []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, token := range tokens {
		l.all[boot][token] = time.Now()
	}
}

func (l *lost) answered(boot string, tokens []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, token := range tokens {
		delete(l.all[boot], token)
	}
}

// due returns the lost tokens of the process, and drops those that have been lost for long.
func (l *lost) due(boot string) map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	due := make(map[string]time.Time)
	for token, at := range l.all[boot] {
		switch {
		case at.IsZero(): // under way
		case time.Since(at) > lostFor:
			delete(l.all[boot], token)
		default:
			due[token] = at
		}
	}
	return due
}

// giveBack releases the claims of w with a lost token, so that another worker can have the jobs at once. What
// goes wrong is tried again the next time; at the latest, the leases end.
func (l *lost) giveBack(ctx context.Context, c *Client, w event.Worker) {
	due := l.due(w.Boot)
	if len(due) == 0 {
		return
	}
	held, err := c.Held(ctx, w.Boot)
	if err != nil {
		return
	}
	for _, j := range held {
		if _, is := due[j.Token]; !is {
			continue
		}
		release := commands.Release{Token: j.Token, Reason: "the answer to the claim was lost"}
		if _, err := c.Apply(ctx, "", j.ID, release); err == nil {
			l.answered(w.Boot, []string{j.Token})
		}
	}
}
