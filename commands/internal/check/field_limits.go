// Package check says what the texts, sizes and times of a command may be. It is pure. Each function returns
// the [Problem] that it finds, nil if there is none; package commands makes an InvalidError of it.
//
// Held by TestEnqueueLimits, TestCommandLimits, TestClaimLimits and TestValidateNames of package commands.
package check

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"jobledger/ledger/event"
	"jobledger/ledger/proof"
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
	if len(tags) > MaxTags {
		return &Problem{"tags", fmt.Sprintf("of %d", len(tags)), "up to 32 tags"}
	}
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

// Delay finds a wait that is not allowed.
func Delay(field string, d time.Duration) *Problem {
	if d < 0 || d > MaxRunTime {
		return &Problem{field, d.String(), "0s to 8784h"}
	}
	return nil
}

// Backoff finds a wait after failures that is not allowed.
func Backoff(b event.Backoff) *Problem {
	if b.Valid() {
		return nil
	}
	return &Problem{"backoff", fmt.Sprintf("%s to %s by %g", b.Min, b.Max, b.Factor),
		"min and max from 1 ms to 31 days, and a factor from 1 to 100 in thousandths"}
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

// Queues finds the first of names that is not valid as the name of a queue.
func Queues(names []string) *Problem { return first(names, Queue) }

// Group finds a problem unless name is valid as the name of a group; "" is none.
func Group(name string) *Problem {
	if err := Text("group", name, event.MaxGroup); err != nil {
		return err
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return &Problem{"group", fmt.Sprintf("%.80q", name), "text without control characters"}
	}
	return nil
}

// first returns the first problem that of finds in list.
func first(list []string, of func(string) *Problem) (problem *Problem) {
	for _, text := range list {
		if problem = of(text); problem != nil {
			break
		}
	}
	return problem
}

// shown is text as an error quotes it: only its length if it is too long.
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

// Labels finds the first of list that is not valid as a Label.
func Labels(field string, list []string) *Problem {
	return first(list, func(label string) *Problem { return Label(field, label) })
}

// Optional is Label for a text that may be missing.
func Optional(field, text string) *Problem {
	if text == "" {
		return nil
	}
	return Label(field, text)
}

// Sealing finds what is wrong with the name of a ledger or the public key of its checkpoints.
func Sealing(b *event.Sealing) *Problem {
	// The text of a proof ends with its checkpoint, where a line begins that is not an event.
	if err := proof.CheckOrigin(b.Origin); err != nil || strings.HasPrefix(b.Origin, "{") {
		return &Problem{"origin", b.Origin,
			"1 to 255 bytes without spaces, control characters and +, and without { at the beginning"}
	}
	if b.Key != "" && proof.CheckKey(b.Key) != nil {
		return &Problem{"key", b.Key, "a public key NAME+HASH+KEY, as seal keygen prints it"}
	}
	return nil
}

// Jobs finds a problem unless the references to jobs are at most so many, and each job is there once.
func Jobs(field string, references []string, most int) *Problem {
	if len(references) > most {
		return &Problem{field, fmt.Sprintf("of %d jobs", len(references)), fmt.Sprintf("up to %d jobs", most)}
	}
	seen := make(map[event.JobID]bool, len(references))
	return first(references, func(text string) *Problem {
		job, _, err := event.ParseReference(text)
		if err != nil || seen[job] {
			return &Problem{field, fmt.Sprintf("%.80q", text),
				"jobs by id, each once, for succeeded, failed or finished"}
		}
		seen[job] = true
		return nil
	})
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

// reservedActors are the prefixes of the names under which programs and requests act.
var reservedActors = []string{"worker:", "sweeper:", "schedule:", "http:", "unix:", "inbox:"}

// ReservedActor returns the reserved prefix of actor: worker:, sweeper:, schedule:, http:, unix: or inbox:;
// "" if it has none. Capitals, and what cannot be seen before the name, make no other name of it.
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
	return cmp.Or(Text("worker", w.Name, MaxKey), Text("boot", w.Boot, MaxKey), Optional("version", w.Version),
		Text("host", w.Host, MaxKey))
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
