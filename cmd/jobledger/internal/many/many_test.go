package many

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

func TestTemplateFills(t *testing.T) {
	for _, test := range []struct {
		words  []string
		shell  bool
		values []string
		want   []string
	}{
		{[]string{"convert", "{}", "{.}.webp"}, false, []string{"a b/c.d.jpg"},
			[]string{"convert", "a b/c.d.jpg", "a b/c.d.webp"}},
		{[]string{"echo", "{/}|{//}|{/.}|{#}"}, false, []string{"/x.d/y.tar.gz"},
			[]string{"echo", "y.tar.gz|/x.d|y.tar|7"}},
		{[]string{"echo", "{//}", "{.}"}, false, []string{"x.d/y"}, []string{"echo", "x.d", "x.d/y"}},
		{[]string{"ls", "-l"}, false, []string{"-x\n'\""}, []string{"ls", "-l", "-x\n'\""}},
		{[]string{"{}"}, false, []string{"true"}, []string{"true"}},
		{[]string{"grep", "a{1}{2,3}"}, false, []string{"f"}, []string{"grep", "a{1}{2,3}", "f"}},
		{[]string{"cp", "{}", "-t", "{2.}-{1}"}, false, []string{"a", "b.c"},
			[]string{"cp", "a", "b.c", "-t", "b-a"}},
		{[]string{"echo"}, false, []string{"a", "b"}, []string{"echo", "a", "b"}},
		{[]string{"x={}"}, false, []string{"a", "b"}, []string{"x=a b"}},
		{[]string{"gzip -c {} >{.}.gz"}, true, []string{"a b.c"},
			[]string{"/bin/sh", "-c", `gzip -c "${1}" >"${2}".gz`, "sh", "a b.c", "a b"}},
		{[]string{"gzip -c", "-9"}, true, []string{"a"},
			[]string{"/bin/sh", "-c", `gzip -c "${2}"`, "sh", "-9", "a"}},
	} {
		template, err := New(test.words, test.shell, len(test.values))
		if err != nil {
			t.Fatal(err)
		}
		if got := template.Fill(7, test.values); !slices.Equal(got, test.want) {
			t.Errorf("%q of %q: got %q, want %q", test.words, test.values, got, test.want)
		}
	}
	for _, words := range [][]string{{}, {"echo", "{3}"}, {"echo", "{99999999999999999999}"}} {
		if _, err := New(words, false, 2); err == nil {
			t.Errorf("%q: no error", words)
		}
	}
}

// Whatever quotes surround a placeholder in a text for the shell, a value is data.
func TestTemplateIsNoShellText(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	const evil = "a  b'\"`touch bad`$(touch bad);touch bad\n*\\"
	for text, want := range map[string]string{
		`printf %s {}`: evil, `printf %s "{}"`: evil, `printf %s '{}'`: evil,
		`printf %s "x{}'y"`: "x" + evil + "'y",
		`printf %s 'x"{}y'`: "x\"" + evil + "y", `printf %s \"{}`: "\"" + evil, `printf %s`: evil,
		`set -f; printf %s "\"{}"`: "\"" + evil, `cat <<E
{}
E`: "\"" + evil + "\"\n",
		`: "$(: "{}")"`: "", // as if without the inner quotes, and still data
	} {
		template, err := New([]string{text}, true, 1)
		if err != nil {
			t.Fatal(err)
		}
		argv := template.Fill(1, []string{evil})
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir = t.TempDir()
		got, err := cmd.CombinedOutput()
		if err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
		if _, err := os.Stat(cmd.Dir + "/bad"); err == nil {
			t.Errorf("%s: the value was run", text)
		}
	}
}

func TestCombine(t *testing.T) {
	command, lists := Split([]string{"echo", "x", ":::", "a", "b", ":::", "1", "2"})
	if !slices.Equal(command, []string{"echo", "x"}) {
		t.Errorf("got %q", command)
	}
	var got []string
	for values := range Combine(lists) {
		got = append(got, strings.Join(values, ""))
	}
	if !slices.Equal(got, []string{"a1", "a2", "b1", "b2"}) {
		t.Errorf("got %q", got)
	}
	_, lists = Split([]string{"echo", ":::", "a", ":::"})
	for values := range Combine(lists) {
		t.Errorf("a list without values gives %q", values)
	}
}

func TestHaltAndSlotsAreRead(t *testing.T) {
	for text, reached := range map[string][2]int{"soon,fail=2": {5, 2}, "now,success=1": {1, 0},
		"soon,done=3": {1, 2}} {
		h, err := ParseHalt(text)
		if err != nil || !h.Reached(reached[0], reached[1]) || h.Reached(0, 1) ||
			h.Now != strings.HasPrefix(text, "now") {
			t.Errorf("%s: %+v, %v", text, h, err)
		}
	}
	if h, err := ParseHalt("never"); err != nil || h.Reached(9, 9) {
		t.Errorf("never: %+v, %v", h, err)
	}
	for _, text := range []string{"soon", "soon,fail", "soon,fail=10%", "later,fail=1", "now,fail=0",
		"now,x=1"} {
		if _, err := ParseHalt(text); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	cores := runtime.NumCPU()
	for text, want := range map[string]int{"": cores, "100%": cores, "1%": 1, "200%": 2 * cores,
		"+1": cores + 1, "3": 3} {
		if n, err := ParseSlots(text); n != want || err != nil {
			t.Errorf("%q: %d, %v, want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "x", "+1%", "++1", "1001", "%", "+"} {
		if n, err := ParseSlots(text); err == nil {
			t.Errorf("%q: %d", text, n)
		}
	}
}

// Each output is whole, with Keep in the order of the places, even if commands are tried again, write
// much, or never run.
func TestPrinterKeepsOrder(t *testing.T) {
	for _, keep := range []bool{false, true} {
		var out, errs bytes.Buffer
		p := &Printer{Out: &out, Err: &errs, Keep: keep}
		p.Start()
		var commands sync.WaitGroup
		const n = 50
		for i := range n {
			commands.Go(func() {
				place := n - 1 - i
				if place%7 == 0 {
					stdout, _ := p.Begin(place)
					_, _ = fmt.Fprintf(stdout, "an attempt before\n")
				}
				stdout, stderr := p.Begin(place)
				_, _ = fmt.Fprintf(stdout, "%02d begins\n", place)
				_, _ = fmt.Fprintf(stderr, "%02d\n", place)
				_, _ = stdout.Write(bytes.Repeat([]byte("x"), place*5000))
				_, _ = fmt.Fprintf(stdout, "\n%02d ends\n", place)
				if place != 11 { // it is left
					p.End(place)
				}
			})
		}
		commands.Wait()
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		var begun []string
		rest := out.String()
		for rest != "" {
			place := rest[:2]
			begun = append(begun, place)
			number, _ := strconv.Atoi(place)
			whole := place + " begins\n" + strings.Repeat("x", number*5000) + "\n" + place + " ends\n"
			var ok bool
			if rest, ok = strings.CutPrefix(rest, whole); !ok {
				t.Fatalf("the output of %s is not whole", place)
			}
		}
		if len(begun) != n-1 || keep && !slices.IsSorted(begun) || strings.Count(errs.String(), "\n") != n-1 {
			t.Errorf("keep %v: got %q and %q", keep, begun, errs.String())
		}
	}
}
