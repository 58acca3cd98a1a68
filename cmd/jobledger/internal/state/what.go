package state

import (
	"cmp"
	"context"
	"strings"
	"unicode"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/argv"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// TitleTag is the tag that says what a job is, BatchTag the one with the name of the run that made it with
// others.
const (
	TitleTag = "title"
	BatchTag = "batch"
)

// whatRunes is how many characters of a payload [What] has at most, whatBytes how many bytes it looks at.
const (
	whatRunes = 40
	whatBytes = 400
)

// What says for people what j is: its tag title, else the command that it carries, else its key, else the
// beginning of its payload, in one line; "": nothing says it.
func What(ctx context.Context, tx *ledger.Tx, j projection.Job) (string, error) {
	text := j.Tags[TitleTag]
	if j.Form == "" || j.Erased {
		text = cmp.Or(text, j.Key)
	}
	if text != "" {
		return text, nil
	}
	if j.Erased {
		return "(erased)", nil
	}
	_, payload, _, err := tx.Body(ctx, cmp.Or(j.PayloadAt, j.N))
	if err != nil || len(payload) == 0 {
		return "", err
	}
	return inLine(j.Form, payload), nil
}

// WhatTicks says for people what the jobs of a schedule are: their tag title, else the command that they
// carry, or the beginning of their payload, in one line; "": nothing says it.
func WhatTicks(spec event.ScheduleSet) string {
	if title := spec.Tags[TitleTag]; title != "" || spec.Payload == "" {
		return title
	}
	return inLine(spec.Form, []byte(spec.Payload))
}

// inLine is the command that a payload carries, or its beginning.
func inLine(form string, payload []byte) string {
	if carried, err := argv.Decode(payload); err == nil && form == event.FormArgv {
		payload = []byte(words.CommandLine(carried.Argv))
		if script, ok := argv.ShellText(carried.Argv); ok && len(carried.Argv) < 5 {
			payload = []byte(script) // a line for the shell is the line
		}
	}
	text := strings.ToValidUTF8(string(payload[:min(len(payload), whatBytes)]), "")
	blank := func(c rune) bool { return c == ' ' || !unicode.IsPrint(c) }
	text = strings.Join(strings.FieldsFunc(text, blank), " ")
	if text == "" {
		return "(" + words.Count(int64(len(payload)), "byte") + ")"
	}
	if runes := []rune(text); len(runes) > whatRunes || len(payload) > whatBytes {
		text = string(runes[:min(len(runes), whatRunes)]) + "…"
	}
	return text
}
