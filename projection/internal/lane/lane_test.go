package lane

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"jobledger/ledger"
	_ "jobledger/ledger/ledgertest" // its flags
)

// labelled reports whether text can be a version or a label: these are checked before a job is enqueued.
func labelled(text string) bool {
	return text != "" && len(text) <= 64 &&
		strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// FuzzText checks what claims depend on: a lane can be parsed into its parts, lies between the bounds of its
// queue and of no other, and sorts by priority first.
func FuzzText(f *testing.F) {
	f.Add("mail", 0, "", "", "mail-2", 0)
	f.Add("mail", 100, "v1", "gpu\neu\ngpu", "mail", -100)
	f.Add("q", 50, "", "", "q", 0)
	f.Add("a", -100, "~", "!\n~", "a.b", 7)
	f.Add("a-", 5, "!", "", "a", 5)
	f.Fuzz(func(t *testing.T, queue string, priority int, version, labels, other string, less int) {
		queueName := func(name string) bool {
			return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == ""
		}
		requires := strings.Fields(labels)
		if !queueName(queue) || !queueName(other) || version != "" && !labelled(version) ||
			slices.ContainsFunc(requires, func(l string) bool { return !labelled(l) }) {
			return
		}
		priority, less = priority%101, less%101
		text := Text(queue, priority, version, requires)
		gotPriority, gotVersion, gotRequires, err := Parse(text)
		slices.Sort(requires)
		if requires = slices.Compact(requires); err != nil || gotPriority != priority || gotVersion != version ||
			!slices.Equal(gotRequires, requires) {
			t.Fatalf("%q %d %q %q: the lane %q is read as %d, %q, %q, %v", queue, priority, version, requires, text,
				gotPriority, gotVersion, gotRequires, err)
		}
		for _, name := range []string{queue, other} {
			from, before := Bounds(name)
			if within := from <= text && text < before; within != (name == queue) {
				t.Fatalf("the lane %q lies between the bounds of the queue %q: %t", text, name, within)
			}
		}
		if least := Text(queue, less, "", nil); less < priority && least <= text {
			t.Fatalf("%q, of priority %d, sorts before %q of %d", least, less, text, priority)
		}
	})
}

// Text that is not a lane is reported as damage.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"mail 100 ", "mail 000 v1 eu gpu", "", " ", "  ", "mail x v",
		"mail 99999999999999999999 ", "\xff 100 \xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, version, requires, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ledger.ErrDamaged) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if again := strings.Join(append([]string{version}, requires...), " "); !strings.HasSuffix(text, " "+again) {
			t.Fatalf("%q is read as %q", text, again)
		}
	})
}
