package words

import "testing"

func TestTruncateCutsBetweenCharacters(t *testing.T) {
	tests := []struct {
		in    string
		width int
		want  string
	}{
		{"hello", 5, "hello"}, {"hello", 4, "hel…"}, {"hello", 1, "…"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"},
		{"👩‍👩‍👧x", 2, "…"}, {"e\u0301te", 2, "e\u0301…"},
	}
	for _, tt := range tests {
		if got := Truncate(tt.in, tt.width); got != tt.want {
			t.Errorf("%q to %d: got %q, want %q", tt.in, tt.width, got, tt.want)
		}
	}
}

func TestEscape(t *testing.T) {
	tests := []struct{ in, want string }{
		{"hello, wörld 日本 👩‍👩‍👧", "hello, wörld 日本 👩‍👩‍👧"},
		{"\x1b[2J", `\x1b[2J`},
		{"a\nb\tc\rd\x00\x7f", `a\nb\tc\rd\x00\x7f`},
		{"\u009b31m", `\u009b31m`},
		{"\u202eevil\u2066\u200f\u061c", `\u202eevil\u2066\u200f\u061c`},
		{"\u2028\ufeff\u200b", `\u2028\ufeff\u200b`},
		{"\U000e0041", `\U000e0041`},
		{"\xff\xfe", `\xff\xfe`},
		{"\ufffd", "\ufffd"},
		{`\x1b`, `\x1b`},
	}
	for _, tt := range tests {
		if got := Escape(tt.in); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
	}
	if got, want := EscapeLines("a\n\tb\x1b"), "a\n\tb\\x1b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
