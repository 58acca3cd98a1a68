package main

import "testing"

func TestQuotesInAReportAreNothingButText(t *testing.T) {
	for text, want := range map[string]string{"": "", "cli:ada@desk": "`cli:ada@desk`", "a|b`c`": "`a\\|b'c'`", "x\n## y\x1b[31m": "`x\\n## y\\x1b[31m`", " ` ": "`'`"} {
		if got := quote(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
