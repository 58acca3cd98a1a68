package fingerprint

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	_ "jobledger/ledger/ledgertest" // the flags of all tests
)

// TestFingerprints: what f1 means never changes. Each line of the file is the fingerprint of a failure that
// exited with 7, what its last line is folded to, and the line.
func TestFingerprints(t *testing.T) {
	text, err := os.ReadFile("testdata/f1.txt")
	if err != nil {
		t.Fatal(err)
	}
	exit := 7
	examples := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, example := range examples {
		_, line, _ := strings.Cut(strings.TrimPrefix(example, "f1-"), "\t")
		_, line, _ = strings.Cut(line, "\t")
		if got := fmt.Sprintf("%s\t%s\t%s", Of("exit_code", &exit, "", line), Fold(line), line); got != example {
			t.Errorf("%s, and not\n%s", got, example)
		}
	}
	if len(examples) < 60 {
		t.Errorf("only %d examples", len(examples))
	}
	// How the attempt ended is part of it, and nothing but the last line is.
	seen := make(map[string]bool)
	for _, id := range []string{Of("exit_code", &exit, "", "a"), Of("exit_code", new(8), "", "a"),
		Of("exit_code", nil, "", "a"), Of("signal", nil, "SIGKILL", "a"), Of("signal", nil, "SIGTERM", "a"),
		Of("smtp_421", nil, "", "a"), Of("lease_expired", nil, "", ""), Of("exit_code", &exit, "", "b")} {
		if seen[id] || !Is(id) {
			t.Errorf("%s is of two sorts, or none", id)
		}
		seen[id] = true
	}
	for _, detail := range []string{"a", "first\na", "x\r\na\n", "10%\r20%\ra", "b\n\n  a\t\n \n",
		"\x1b[31ma\x1b[0m"} {
		if !seen[Of("exit_code", &exit, "", detail)] || LastLine(detail) == "" {
			t.Errorf("%q differs from its last line", detail)
		}
	}
	if len(Fold(strings.Repeat("é", 5000))) != maxFolded || LastLine("a\n\n") != "a" || LastLine(" \n") != "" {
		t.Error("a long line, or none")
	}
	for _, text := range []string{"", "f1-", "f1-0123456789ab\n", "f2-0123456789ab", "f1-0123456789AB",
		"f1-0123456789abc"} {
		if Is(text) {
			t.Errorf("%q is a fingerprint", text)
		}
	}
}

func FuzzFingerprint(f *testing.F) {
	f.Add("", 0)
	f.Add("550 no such user user12@example.com\n\n", 3)
	f.Add("'can\"t` \x1b[0m ://a/b? 0x \\ 2026-01-02T03:04 \xff", 9)
	f.Fuzz(func(t *testing.T, detail string, n int) {
		folded := Fold(detail)
		if !utf8.ValidString(folded) || len(folded) > maxFolded {
			t.Errorf("%q is folded to %q", detail, folded)
		}
		if id := Of("a", &n, "", detail); !Is(id) || id != Of("a", &n, "", LastLine(detail)) {
			t.Errorf("%q has the fingerprint %s, its last line another", detail, id)
		}
		one, other := Fold(fmt.Sprintf("no %d of user%d", uint8(n), uint16(n))), Fold("no 7 of user7")
		if one != other {
			t.Errorf("%q and %q", one, other)
		}
	})
}
