package main

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
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
