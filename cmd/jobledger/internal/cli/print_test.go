package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"jobledger/cmd/jobledger/internal/words"
)

func exampleTable() *Table {
	t := &Table{Columns: []Column{
		{Title: "JOB"}, {Title: "STATE", State: true}, {Title: "TRIES", Right: true}, {Title: "QUEUE", Least: 5},
		{Title: "PAYLOAD", Least: 8},
	}}
	t.Add("01J", "queued", "1", "mail", "hello")
	t.Add("01K", "failed", "12", "very.long.queue", "日本語のとても長いペイロード")
	t.Add("01L", "succeeded", "", "mail", "")
	return t
}

func TestTableCompleteInPipe(t *testing.T) {
	p, out := printing(0, false)
	p.PrintTable(exampleTable())
	p.Flush()
	want := `JOB  STATE      TRIES  QUEUE            PAYLOAD
01J  queued         1  mail             hello
01K  failed        12  very.long.queue  日本語のとても長いペイロード
01L  succeeded         mail
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	for width := 30; width < 100; width++ {
		p, out := printing(width, false)
		p.PrintTable(exampleTable())
		p.Flush()
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			least := 3 + 9 + 5 + 5 + 8 + 4*2
			if n := uniseg.StringWidth(line); n > max(width, least) {
				t.Errorf("width %d: line of %d: %q", width, n, line)
			}
			if strings.HasSuffix(line, " ") {
				t.Errorf("width %d: spaces at the end of %q", width, line)
			}
		}
	}
}

func TestTableColorsHaveNoWidth(t *testing.T) {
	p, colored := printing(60, true)
	p.PrintTable(exampleTable())
	p.Flush()
	q, plain := printing(60, false)
	q.PrintTable(exampleTable())
	q.Flush()
	stripped := colored.String()
	for _, s := range []string{"0", "1", "31", "32", "34"} {
		stripped = strings.ReplaceAll(stripped, "\x1b["+s+"m", "")
	}
	if stripped != plain.String() {
		t.Errorf("got\n%q\nwant\n%q", stripped, plain)
	}
	if !strings.Contains(colored.String(), "\x1b[31mfailed\x1b[0m") {
		t.Errorf("no red in %q", colored)
	}
}

func TestPrintJSONEscapes(t *testing.T) {
	p, out := printing(0, false)
	in := map[string]any{"payload": "<a&b>\n\x1b\x7f\u009b\u202e\U000e0041 日本\\u202e", "key": nil}
	if err := p.PrintJSON(in); err != nil {
		t.Fatal(err)
	}
	p.Flush()
	want := `{"key":null,"payload":"<a&b>\n\u001b\u007f\u009b\u202e\udb40\udc41 日本\\u202e"}` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out, want)
	}
	var back map[string]any
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["payload"] != in["payload"] {
		t.Errorf("got %q, %v", back["payload"], err)
	}
}

func TestPrintPairsOmitsEmpty(t *testing.T) {
	p, out := printing(0, false)
	p.PrintPairs([2]string{"id", "01J"}, [2]string{"a long name", ""}, [2]string{"state", "queued"})
	p.Flush()
	if want := "id     01J\nstate  queued\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestPrintRawUnchangedInPipe(t *testing.T) {
	for width, want := range map[int]string{0: "\x1b\xff\n", 80: "\\x1b\\xff\n"} {
		p, out := printing(width, false)
		p.PrintRaw([]byte("\x1b\xff\n"))
		p.Flush()
		if out.String() != want {
			t.Errorf("width %d: got %q, want %q", width, out, want)
		}
	}
}

// On a terminal, a listing of events and lines of data fit into its width, and no word is broken: an id can
// be selected.
func TestLongLinesFitTerminal(t *testing.T) {
	const id = "01M8GCVD7X4KSVJBVP2S0BV1YY"
	columns := []string{"     1", "2026-11-28 06:18:01.853+00:00", "enqueued      ", "→ queued   ", id}
	for _, width := range []int{0, 60, 80, 100, 200} {
		p, out := printing(width, false)
		for _, err := range []error{
			p.PrintEvent(columns, make([]words.Style, 5), "in queue mail by cli:root@vm; payload of 2 bytes"),
			p.PrintWrapped("a line with many ids: " + strings.Repeat(id+" ", 9)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		p.Flush()
		if n := strings.Count(out.String(), id); n != 10 {
			t.Errorf("width %d: %d ids are whole, want 10:\n%s", width, n, out)
		}
		for line := range strings.Lines(out.String()) {
			if n := uniseg.StringWidth(strings.TrimSuffix(line, "\n")); width > 0 && n > width {
				t.Errorf("width %d: a line of %d columns: %s", width, n, line)
			}
		}
	}
}
