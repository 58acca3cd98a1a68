package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
)

// ReadBody returns the bytes of text, or for "-" those of standard input, unchanged. More than 1 MiB is an
// error.
func (p *Program) ReadBody(what, text string) ([]byte, error) {
	if text != "-" {
		return readBody(what, strings.NewReader(text))
	}
	if err := p.checkStdin("the " + what); err != nil {
		return nil, err
	}
	p.announceTyping("the " + what)
	return readBody(what, p.stdin)
}

// ReadFile returns the bytes of the file of that name, or for "-" those of standard input, as ReadBody does.
func (p *Program) ReadFile(what, name string) ([]byte, error) {
	if name == "-" {
		return p.ReadBody(what, name)
	}
	f, _, err := openFile("the "+what, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBody(what, f)
}

func readBody(what string, from io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(from, commands.MaxPayload+1))
	if err != nil {
		return nil, fmt.Errorf("read the %s: %w", what, err)
	}
	if len(b) > commands.MaxPayload {
		return nil, WithHint(Usagef("the %s is larger than 1 MiB (1,048,576 bytes)", what),
			"store it elsewhere and give its address")
	}
	return b, nil
}

// CanAsk reports whether a person sits at stdin and stderr, so that a person can answer Ask.
func (p *Program) CanAsk() bool {
	f, ok := p.stdin.(*os.File)
	return ok && p.StderrTerminal && term.IsTerminal(int(f.Fd()))
}

// Ask puts a question to the person at the terminal and reports whether the answer is yes. Everything but y
// and yes is no.
func (p *Program) Ask(format string, args ...any) bool {
	_ = p.Flush()
	question := fmt.Sprintf(format, args...)
	fmt.Fprintf(p.Stderr, "%s: %s [y/N] ", ProgramName, words.EscapeLines(question))
	answer := ""
	for b := make([]byte, 1); len(answer) < 100; { // no more than the line: the rest answers what comes next
		if n, err := p.stdin.Read(b); n == 0 || err != nil || b[0] == '\n' {
			break
		}
		answer += string(b)
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// checkStdin returns an error if standard input is a directory.
func (p *Program) checkStdin(what string) error {
	if f, ok := p.stdin.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return Usagef("%s: standard input is a directory", what)
		}
	}
	return nil
}

// InputWaits reports whether standard input is a file, or a pipe, with something in it that is not
// read. A pipe into which nothing was written yet counts as empty.
func (p *Program) InputWaits() bool {
	f, ok := p.stdin.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return false
	case info.Mode().IsRegular():
		return info.Size() > 0
	}
	return info.Mode()&os.ModeNamedPipe != 0 && readable(f)
}

// announceTyping prints a message if standard input is a terminal, since the program waits for the user then.
func (p *Program) announceTyping(what string) {
	if f, ok := p.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.Message("reading %s from the terminal; Ctrl-D ends it", what)
	}
}

// openFile opens the file of that name, which is not a directory. The word what precedes the name in errors.
func openFile(what, name string) (*os.File, os.FileInfo, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, Usagef("%s: %w", what, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = Usagef("%s: %s is a directory", what, name)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// OpenInput opens the file of that name, or standard input for "-", so that it can be read more than once:
// anything but a regular file is first copied to a temporary file. What is appended later is not read. The
// word what precedes the name in errors. The caller calls done.
func (p *Program) OpenInput(what, name string) (content *io.SectionReader, done func(), err error) {
	from := p.stdin
	if name != "-" {
		f, info, err := openFile(what, name)
		if err != nil {
			return nil, nil, err
		}
		if info.Mode().IsRegular() {
			return io.NewSectionReader(f, 0, info.Size()), func() { _ = f.Close() }, nil
		}
		defer f.Close()
		from = f
	} else {
		if err := p.checkStdin(what); err != nil {
			return nil, nil, err
		}
		p.announceTyping("lines")
	}
	copied, err := os.CreateTemp("", ProgramName+"-*")
	if err != nil {
		return nil, nil, err
	}
	unlinked := os.Remove(copied.Name()) // where the system allows it, nothing is left over
	done = func() {
		_ = copied.Close()
		if unlinked != nil {
			_ = os.Remove(copied.Name())
		}
	}
	n, err := io.Copy(copied, from)
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("read %s %s: %w", what, name, err)
	}
	return io.NewSectionReader(copied, 0, n), done, nil
}
