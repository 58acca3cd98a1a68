package queues

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/group"
	"jobledger/projection/limit"
	"jobledger/projection/status"
)

// effectsOf say what it would do to bring the limits of a queue, or of one group of it, from before to after,
// as things are now.
func effectsOf(before, after limit.Spec, at status.Limited, name string, groups []group.Waiting,
	paused bool) (say []string) {
	if before == after {
		return []string{"It is so already: nothing would change."}
	}
	live, ready := at.Live, at.Ready
	if name != "" {
		live, ready = at.Groups[name], 0
		for _, g := range groups {
			if g.Group == name {
				ready = g.Queued
			}
		}
	}
	if before.Running != after.Running {
		bound := after.Running
		if name != "" && bound == 0 {
			bound = at.PerGroup // as the other groups
		}
		say = append(say, fmt.Sprintf("%s → %s at once: %s", orAny(before.Running), orAny(after.Running),
			startsWith(int64(bound), live, ready)))
	}
	if before.PerGroup != after.PerGroup {
		over := 0
		for _, g := range groups {
			if _, own := at.Exceptions[g.Group]; !own && after.PerGroup > 0 && g.Live > int64(after.PerGroup) {
				over++
			}
		}
		text := "no group has more at work now."
		if over > 0 {
			text = words.Count(int64(over), "group") + words.Plural(int64(over), " has", " have") +
				" more at work now: nothing stops, and none of these starts another job until some have ended."
		}
		say = append(say, fmt.Sprintf("%s → %s of each group: %s", orAny(before.PerGroup), orAny(after.PerGroup),
			text))
	}
	if r := after.Rate; before.Rate != r {
		text := "Starts are not spread any more."
		if r.N > 0 {
			every := r.Per / time.Duration(r.N)
			text = fmt.Sprintf("One start every %s", words.Briefly(every))
			if ready > 0 {
				text += fmt.Sprintf(": the %s ready now need at least %s", wereReady(ready),
					words.Briefly(time.Duration(ready)*every))
			}
			text += "."
		}
		say = append(say, text)
	}
	if r := after.PerGroupRate; before.PerGroupRate != r && r.N > 0 {
		say = append(say, fmt.Sprintf("One start of each group every %s.", words.Briefly(r.Per/time.Duration(r.N))))
	}
	if x := len(at.ActiveExceptions()); name == "" && after == (limit.Spec{}) && x > 0 {
		say = append(say, words.Count(int64(x), "exception")+" of groups would go with the limits.")
	}
	if paused {
		say = append(say, "The queue is paused: nothing starts before it is resumed.")
	}
	return say
}

// startsWith says what a bound does where so many jobs are live and so many ready.
func startsWith(bound, live, ready int64) string {
	switch {
	case bound > 0 && live >= bound:
		return fmt.Sprintf("nothing stops; %s at work, and the next one starts when %d %s ended.", areLive(live),
			live-bound+1, words.Plural(live-bound+1, "has", "have"))
	case ready == 0:
		return "nothing stops, and nothing waits."
	case bound > 0:
		n := min(ready, bound-live)
		return fmt.Sprintf("%d more may start now, of %d that wait.", n, ready)
	}
	return fmt.Sprintf("all %d that wait may start, as workers are free.", ready)
}

func areLive(n int64) string { return fmt.Sprintf("%d %s", n, words.Plural(n, "is", "are")) }

func wereReady(n int64) string {
	return words.Count(n, "job") + " that " + words.Plural(n, "is", "are")
}

// orAny is a bound.
func orAny(n int) string {
	if n == 0 {
		return "any number"
	}
	return fmt.Sprint(n)
}
