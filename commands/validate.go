package commands

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"jobledger/ledger/event"
)

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

// checkTags reports the first bad tag in the order of names, so that the same tags give the same error.
func checkTags(tags map[string]string) error {
	var first string
	var bad error
	for name, value := range tags {
		if err := checkTag(name, value); err != nil && (bad == nil || name < first) {
			first, bad = name, err
		}
	}
	return bad
}

func checkTag(name, value string) error {
	if name == "" {
		return &InvalidError{"tags", `""`, "tags with a name"}
	}
	if err := CheckText("tags", name, MaxTag); err != nil {
		return err
	}
	return CheckText(fmt.Sprintf("tags: the value of %q", name), value, MaxTag)
}

// checkRuntime permits 0, which means no limit.
func checkRuntime(d time.Duration) error {
	if d < 0 || d > MaxRunTime || d%time.Microsecond != 0 {
		return &InvalidError{"max_runtime", d.String(), "1µs to 8784h"}
	}
	return nil
}

// CheckSize returns an InvalidError for a payload or result of more than MaxPayload bytes.
func CheckSize(field string, content []byte) error {
	if len(content) > MaxPayload {
		return &InvalidError{field, fmt.Sprintf("of %d bytes", len(content)), "up to 1,048,576 bytes"}
	}
	return nil
}

func checkPriority(p int) error {
	if p < -MaxPriority || p > MaxPriority {
		return &InvalidError{"priority", fmt.Sprint(p), "-100 to 100"}
	}
	return nil
}

// CheckQueue returns an InvalidError unless name is valid as the name of a queue.
func CheckQueue(name string) error {
	const allowed = "1 to 64 of a-z 0-9 . _ -"
	if name == "" {
		return &InvalidError{"queue", "", allowed}
	}
	if len(name) > MaxQueue || !onlyQueueBytes(name) {
		return &InvalidError{"queue", shown(name, MaxQueue), allowed}
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

// CheckLabel returns an InvalidError unless text is valid as a version, a capability or an error code:
// printable ASCII without spaces, because these are parts of a lane.
func CheckLabel(field, text string) error {
	const allowed = "1 to 64 printable ASCII characters without spaces"
	if text == "" || len(text) > MaxLabel {
		return &InvalidError{field, shown(text, MaxLabel), allowed}
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' {
			return &InvalidError{field, shown(text, MaxLabel), allowed}
		}
	}
	return nil
}

// CheckActor returns an InvalidError unless actor is valid as the name of an actor. Import accepts the same
// names, so that a ledger can always import what it exports. Roles are valid names: a worker acts as
// "worker:" and its Process.Name, a sweeper as "sweeper:" and a name. A program that takes the name from a
// person or a request must refuse those too, with ReservedActor.
func CheckActor(actor string) error {
	if actor == "" {
		return &InvalidError{"actor", "", fmt.Sprintf("1 to %d bytes of UTF-8 without NUL", MaxActor)}
	}
	return CheckText("actor", actor, MaxActor)
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

// checkWorker returns an InvalidError unless w identifies a worker process.
func checkWorker(w event.Worker) error {
	if w.Name == "" || w.Boot == "" {
		return &InvalidError{"worker", fmt.Sprintf("%.80q", w.Name), "1 to 255 bytes, and a boot"}
	}
	if err := CheckText("worker", w.Name, MaxKey); err != nil {
		return err
	}
	if err := CheckText("boot", w.Boot, MaxKey); err != nil {
		return err
	}
	if w.Version != "" {
		if err := CheckLabel("version", w.Version); err != nil {
			return err
		}
	}
	return CheckText("host", w.Host, MaxKey)
}

// CheckWorker returns an InvalidError unless w identifies a worker process.
func CheckWorker(w event.Worker) error { return checkWorker(w) }

// CheckText returns an InvalidError unless text is UTF-8 without NUL of at most so many bytes.
func CheckText(field, text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return &InvalidError{field, shown(text, most), fmt.Sprintf("up to %d bytes of UTF-8 without NUL", most)}
	}
	return nil
}

// CheckLease returns an InvalidError unless d is valid as a lease.
func CheckLease(d time.Duration) error {
	if d < MinLease || d > MaxLease {
		return &InvalidError{"lease", d.String(), "1s to 24h"}
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
