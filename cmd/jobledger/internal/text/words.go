package text

import (
	"fmt"
	"strings"

	"jobledger/ledger"
)

// Count returns n with its noun: "1 byte", "2 bytes".
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// VerbFor returns the form of a verb or a noun that goes with n.
func VerbFor(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// OrNone returns s, or "none" if it is empty.
func OrNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// ByteSize formats n in the largest unit that fits, with the exact number.
func ByteSize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB (%d bytes)", float64(n)/(1<<30), n)
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB (%d bytes)", float64(n)/(1<<20), n)
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB (%d bytes)", float64(n)/(1<<10), n)
	}
	return Count(n, "byte")
}

// Process names one process among those of a worker name: its pid, host and version.
func Process(w ledger.Worker) string {
	text := fmt.Sprintf("pid %d on %s", w.PID, OrNone(w.Host))
	if w.Version != "" {
		text += ", version " + w.Version
	}
	return text
}

// QuoteShell returns text as one word for a POSIX shell.
func QuoteShell(text string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("/._-+:,@%=", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !safe(r) }) < 0 && text[0] != '-' {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
