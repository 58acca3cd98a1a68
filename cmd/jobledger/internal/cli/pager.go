package cli

import (
	"os"
	"os/exec"
	"strings"
)

// Pager returns the command that $PAGER names, else less; nil if there is none or $PAGER is empty.
func Pager() *exec.Cmd {
	words := []string{"less"}
	if value, isSet := os.LookupEnv("PAGER"); isSet {
		words = strings.Fields(value)
	}
	if len(words) == 0 {
		return nil
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		return nil
	}
	command := exec.Command(program, words[1:]...) // #nosec G204 -- the user's own pager; no shell reads it
	command.Env = os.Environ()
	if _, isSet := os.LookupEnv("LESS"); !isSet {
		command.Env = append(command.Env, "LESS=FRX") // end if the page fits on the screen, and leave it there
	}
	return command
}
