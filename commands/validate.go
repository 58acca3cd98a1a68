package commands

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"jobledger/ledger"
)

// What a job may be. Sizes are bytes.
const (
	MaxPayload     = 1 << 20 // of the payload, and of the result
	MaxErrorDetail = 8 << 10
	MaxKey         = 255
	MaxQueue       = 64
	MaxTags        = 32
	MaxLabels      = 16
	MaxLabel       = 64 // of a version, a capability label or an error code
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

// checkTags speaks of the first bad tag by name, so that the same tags get the same answer.
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
	if err := checkText("tags", name, MaxTag); err != nil {
		return err
	}
	return checkText(fmt.Sprintf("tags: the value of %q", name), value, MaxTag)
}

// checkRuntime lets 0 pass, which is no limit.
func checkRuntime(d time.Duration) error {
	if d < 0 || d > MaxRunTime || d%time.Microsecond != 0 {
		return &InvalidError{"max_runtime", d.String(), "1µs to 8784h"}
	}
	return nil
}

// CheckQueue returns an InvalidError unless name can be the name of a queue.
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

// shown is text as an error shows it: how long it is where that is what is wrong with it.
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

// CheckLabel returns an InvalidError unless text can be a version, a capability or an error code: printable ASCII
// without spaces, because these are parts of a lane.
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

// CheckActor returns an InvalidError unless actor can be the name of who acts. Whatever a ledger has recorded must
// pass through an export and an import, which know no other names.
func CheckActor(actor string) error {
	if actor == "" {
		return &InvalidError{"actor", "", fmt.Sprintf("1 to %d bytes of UTF-8 without NUL", MaxActor)}
	}
	return checkText("actor", actor, MaxActor)
}

// checkWorker returns an InvalidError unless w can be a worker process.
func checkWorker(w ledger.Worker) error {
	if w.Name == "" || w.Boot == "" {
		return &InvalidError{"worker", fmt.Sprintf("%.80q", w.Name), "1 to 255 bytes, and a boot"}
	}
	if err := checkText("worker", w.Name, MaxKey); err != nil {
		return err
	}
	if err := checkText("boot", w.Boot, MaxKey); err != nil {
		return err
	}
	if w.Version != "" {
		if err := CheckLabel("version", w.Version); err != nil {
			return err
		}
	}
	return checkText("host", w.Host, MaxKey)
}

func checkText(field, text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return &InvalidError{field, shown(text, most), fmt.Sprintf("up to %d bytes of UTF-8 without NUL", most)}
	}
	return nil
}

// CheckCommand returns an InvalidError for a command outside of what is allowed, whatever the job.
func CheckCommand(c Command) error { return check(c) }

func check(c Command) error {
	if token, owner, ok := credentials(c); ok {
		if token == "" {
			return &InvalidError{"token", "", "the token that the claim was given"}
		}
		if err := checkText("token", token, MaxKey); err != nil {
			return err
		}
		if err := checkText("worker", owner, MaxKey); err != nil {
			return err
		}
	}
	switch c := c.(type) {
	case Claim, Reclaim:
		return &InvalidError{"command", c.name(), "what an owner or an operator may ask"} // Service.Claim, Sweeper
	case Heartbeat:
		if c.Progress != nil && !(*c.Progress >= 0 && *c.Progress <= 1) {
			return &InvalidError{"progress", fmt.Sprint(*c.Progress), "0 to 1"}
		}
		if err := CheckLease(c.Lease); err != nil {
			return err
		}
		return checkText("note", c.Note, MaxReason)
	case Succeed:
		if len(c.Result) > MaxPayload {
			return &InvalidError{"result", fmt.Sprintf("of %d bytes", len(c.Result)), "up to 1,048,576 bytes"}
		}
	case Fail:
		if c.RetryIn != nil && (*c.RetryIn < 0 || *c.RetryIn > MaxRunTime) {
			return &InvalidError{"retry_in", c.RetryIn.String(), "0s to 8784h"}
		}
		if c.Code != "" {
			if err := CheckLabel("code", c.Code); err != nil {
				return err
			}
		}
		if err := checkText("signal", c.Signal, MaxLabel); err != nil {
			return err
		}
		return checkText("detail", c.Detail, MaxErrorDetail)
	case Release:
		if c.Delay < 0 || c.Delay > MaxRunTime {
			return &InvalidError{"delay", c.Delay.String(), "0s to 8784h"}
		}
		return checkText("reason", c.Reason, MaxReason)
	case Cancel:
		return checkText("reason", c.Reason, MaxReason)
	case Retry:
		return checkText("reason", c.Reason, MaxReason)
	case Erase:
		return checkText("reason", c.Reason, MaxReason)
	case Reschedule:
		if c.Priority != nil && (*c.Priority < -MaxPriority || *c.Priority > MaxPriority) {
			return &InvalidError{"priority", fmt.Sprint(*c.Priority), "-100 to 100"}
		}
		if c.RunAt != nil && c.RunAt.UTC().Year() > 9999 {
			return &InvalidError{"run_at", ledger.FormatTime(*c.RunAt), "up to the year 9999"}
		}
		return checkText("reason", c.Reason, MaxReason)
	}
	return nil
}

// CheckLease returns an InvalidError unless d can be a lease.
func CheckLease(d time.Duration) error {
	if d < MinLease || d > MaxLease {
		return &InvalidError{"lease", d.String(), "1s to 24h"}
	}
	return nil
}

// Detail makes any text an error_detail: valid UTF-8 without NUL, and of a long text the end, where the cause
// usually stands.
func Detail(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > MaxErrorDetail {
		text = strings.ToValidUTF8(text[len(text)-MaxErrorDetail:], "")
	}
	return text
}
