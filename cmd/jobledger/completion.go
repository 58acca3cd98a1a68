package main

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/schedules"
	"jobledger/projection/status"
)

//go:embed completion
var completionScripts embed.FS

// shells for which there is a script.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// completionVerb prints the script that teaches a shell to complete commands and flags at TAB.
func completionVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "completion", Group: cli.GroupSetUp, Usage: "print the script for completion in a shell",
		Args: strings.Join(shells, "|"), MinArgs: 1, MaxArgs: 1,
		Examples: []cli.Example{
			{"source <(jobledger completion bash)", "complete in this bash; put the line into ~/.bashrc to keep it"},
			{"source <(jobledger completion zsh)", "the same for zsh, in ~/.zshrc after compinit"},
			{"jobledger completion fish > ~/.config/fish/completions/jobledger.fish", "for fish"},
			{"jobledger completion powershell | Out-String | Invoke-Expression", "for PowerShell, in $PROFILE"},
		},
		Complete: map[string][]string{"": shells},
		Run: func(c *cli.Context) error {
			shell := c.Args().First()
			if !slices.Contains(shells, shell) {
				return cli.WithHint(cli.Usagef("no completion for %q", shell), "the shells are %s",
					strings.Join(shells, ", "))
			}
			script, err := completionScripts.ReadFile("completion/" + shell)
			if err != nil {
				return fmt.Errorf("read the script for %s: %w", shell, err)
			}
			_, err = p.Stdout.Write(script)
			return err
		},
	}
}

// namedJobs is how many jobs TAB offers: the newest.
const namedJobs = 50

// names returns what there is of that kind in the ledger, for completion: nothing where that cannot be read.
// Jobs are completed by number, or by id if the user has begun one.
func (p *program) names(ctx context.Context, what, begun string) (names [][2]string) {
	store, err := ledger.OpenExisting(ctx, p.DB)
	if err != nil {
		return nil
	}
	defer store.Close()
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		names = nil
		switch what {
		case cli.QueueNames:
			found, err := status.Queues{At: projection.Now(p.Now())}.Read(ctx, tx)
			for _, q := range found {
				names = append(names, [2]string{q.Name, words.Count(q.Ready, "ready job")})
			}
			return err
		case cli.ScheduleNames:
			found, err := schedules.List(ctx, tx)
			for _, s := range found {
				names = append(names, [2]string{s.Spec.Name, strings.TrimSpace(s.Spec.Cron + " " + s.Spec.Queue)})
			}
			return err
		case cli.WorkerNames:
			found, err := status.Workers{At: projection.Now(p.Now())}.Read(ctx, tx)
			for _, w := range found {
				names = append(names, [2]string{w.Name, w.Host})
			}
			return err
		}
		found, err := projection.List(ctx, tx, projection.Filter{Limit: namedJobs})
		for _, j := range found {
			text, whatErr := state.What(ctx, tx, j)
			if whatErr != nil {
				return whatErr
			}
			text = strings.TrimSpace(j.State.String() + " in " + j.Queue + " " + text)
			name := strconv.FormatInt(j.N, 10)
			if strings.HasPrefix(begun, "0") {
				name = string(j.ID)
			}
			names = append(names, [2]string{name, text})
		}
		return err
	})
	if err != nil {
		return nil
	}
	return names
}
