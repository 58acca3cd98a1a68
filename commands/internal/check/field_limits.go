// Package check says what the texts, sizes and times of a command may be. It is pure. Each function returns
// the [Problem] that it finds, nil if there is none; package commands makes an InvalidError of it.
//
// Held by TestEnqueueLimits, TestCommandLimits, TestClaimLimits and TestValidateNames of package commands.
package check

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"jobledger/ledger/event"
)

// Problem is what is wrong with a field, as commands.InvalidError has it.
type Problem struct{ Field, Got, Allowed string }

// The limits of what a job, a queue or a name may be. Sizes are in bytes.
const (
	MaxPayload     = 1 << 20 // of a payload, and of a result
	MaxErrorDetail = 8 << 10
	MaxKey         = 255
	MaxQueue       = 64
	MaxTags        = 32
	MaxLabels      = 16
	MaxLabel       = 64 // of a version, a capability or an error code
	MaxTag         = 255
	MaxReason      = 1 << 10
	MaxActor       = 1 << 10
	MaxPriority    = 100
	MaxMaxAttempts = 1_000_000
	MinLease       = time.Second
	MaxLease       = 24 * time.Hour
	MaxRunTime     = 366 * 24 * time.Hour
	DefaultLease   = time.Minute
)

// Tags finds the first bad tag in the order of names, so that the same tags give the same error.
func Tags(tags map[string]string) *Problem {
	var first string
	var bad *Problem
	for name, value := range tags {
		if err := tag(name, value); err != nil && (bad == nil || name < first) {
			first, bad = name, err
		}
	}
	return bad
}

func tag(name, value string) *Problem {
	if name == "" {
		return &Problem{"tags", `""`, "tags with a name"}
	}
	if err := Text("tags", name, MaxTag); err != nil {
		return err
	}
	return Text(fmt.Sprintf("tags: the value of %q", name), value, MaxTag)
}

// Runtime finds a max runtime that is not allowed. It permits 0, which means no limit.
func Runtime(d time.Duration) *Problem {
	if d < 0 || d > MaxRunTime || d%time.Microsecond != 0 {
		return &Problem{"max_runtime", d.String(), "1µs to 8784h"}
	}
	return nil
}

// Size finds a payload or result of more than MaxPayload bytes.
func Size(field string, content []byte) *Problem {
	if len(content) > MaxPayload {
		return &Problem{field, fmt.Sprintf("of %d bytes", len(content)), "up to 1,048,576 bytes"}
	}
	return nil
}

// Priority finds a priority that is not allowed.
func Priority(p int) *Problem {
	if p < -MaxPriority || p > MaxPriority {
		return &Problem{"priority", fmt.Sprint(p), "-100 to 100"}
	}
	return nil
}

// Queue finds a problem unless name is valid as the name of a queue.
func Queue(name string) *Problem {
	const allowed = "1 to 64 of a-z 0-9 . _ -"
	if name == "" {
		return &Problem{"queue", "", allowed}
	}
	if len(name) > MaxQueue || !onlyQueueBytes(name) {
		return &Problem{"queue", shown(name, MaxQueue), allowed}
	}
	return nil
}

// shown is text as an error shows it: its length if it is too long.
func shown(text string, most int) string {
	if len(text) > most {
		return fmt.Sprintf("of %d bytes", len(text))
	}
	return fmt.Sprintf("%.80q", text)
}

func onlyQueueBytes(name string) bool {
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// Label finds a problem unless text is valid as a version, a capability or an error code:
// printable ASCII without spaces, because these are parts of a lane.
func Label(field, text string) *Problem {
	const allowed = "1 to 64 printable ASCII characters without spaces"
	if text == "" || len(text) > MaxLabel {
		return &Problem{field, shown(text, MaxLabel), allowed}
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' {
			return &Problem{field, shown(text, MaxLabel), allowed}
		}
	}
	return nil
}

// Actor finds a problem unless actor is valid as the name of an actor. Import accepts the same
// names, so that a ledger can always import what it exports. Roles are valid names: a worker acts as
// "worker:" and its Process.Name, a sweeper as "sweeper:" and a name. A program that takes the name from a
// person or a request must refuse those too, with ReservedActor.
func Actor(actor string) *Problem {
	if actor == "" {
		return &Problem{"actor", "", fmt.Sprintf("1 to %d bytes of UTF-8 without NUL", MaxActor)}
	}
	return Text("actor", actor, MaxActor)
}

// reservedActors begin the names of those that act automatically, and of requests.
var reservedActors = []string{"worker:", "sweeper:", "schedule:", "http:", "unix:"}

// ReservedActor returns the reserved prefix of actor: worker:, sweeper:, schedule:, http: or unix:; "" if it
// has none. Capitals, and what cannot be seen before the name, make no other name of it.
func ReservedActor(actor string) string {
	actor = strings.TrimLeftFunc(actor, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) })
	for _, prefix := range reservedActors {
		if len(actor) >= len(prefix) && strings.EqualFold(actor[:len(prefix)], prefix) {
			return prefix
		}
	}
	return ""
}

// Worker finds a problem unless w identifies a worker process.
func Worker(w event.Worker) *Problem {
	if w.Name == "" || w.Boot == "" {
		return &Problem{"worker", fmt.Sprintf("%.80q", w.Name), "1 to 255 bytes, and a boot"}
	}
	if err := Text("worker", w.Name, MaxKey); err != nil {
		return err
	}
	if err := Text("boot", w.Boot, MaxKey); err != nil {
		return err
	}
	if w.Version != "" {
		if err := Label("version", w.Version); err != nil {
			return err
		}
	}
	return Text("host", w.Host, MaxKey)
}

// Text finds a problem unless text is UTF-8 without NUL of at most so many bytes.
func Text(field, text string, most int) *Problem {
	if len(text) > most || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return &Problem{field, shown(text, most), fmt.Sprintf("up to %d bytes of UTF-8 without NUL", most)}
	}
	return nil
}

// Lease finds a problem unless d is valid as a lease.
func Lease(d time.Duration) *Problem {
	if d < MinLease || d > MaxLease {
		return &Problem{"lease", d.String(), "1s to 24h"}
	}
	return nil
}

// Detail makes any text an error detail: valid UTF-8 without NUL, and of a long text the end, which usually
// holds the cause.
func Detail(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > MaxErrorDetail {
		text = strings.ToValidUTF8(text[len(text)-MaxErrorDetail:], "")
	}
	return text
}

// StateText says in which state a job is: "it is queued", "it has failed", "it was cancelled".
func StateText(s event.State) string {
	verb := "is"
	if s.Final() {
		verb = "has"
	}
	if s == event.CancelledState {
		verb = "was"
	}
	return fmt.Sprintf("it %s %s", verb, s)
}
