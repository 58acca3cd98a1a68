package print

import (
	"maps"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/argv"
	"jobledger/ledger/event"
)

// Carried is the command that a payload of this form carries, for people; nil: it carries none.
func Carried(kind string, payload []byte) (pairs [][2]string) {
	form, err := argv.Decode(payload)
	if err != nil || kind != event.FormArgv {
		return nil
	}
	add := func(name, value string) {
		if value != "" {
			pairs = append(pairs, [2]string{name, value})
		}
	}
	add("command", words.CommandLine(form.Argv))
	add("folder", form.Dir)
	var env []string
	for _, name := range slices.Sorted(maps.Keys(form.Env)) {
		env = append(env, name+"="+words.QuoteShell(form.Env[name]))
	}
	add("environment", strings.Join(env, " "))
	add("env file", form.EnvFile)
	add("umask", form.Umask)
	if len(form.Stdin) > 0 {
		add("input", words.Body(form.Stdin, true))
	}
	return pairs
}
