package crontab

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	secretName = regexp.MustCompile(`(?i)pass|secret|token|credential|_key`)
	fileName   = regexp.MustCompile(`(?i)(file|path|dir|folder)$`)
	assignment = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_]*)=("[^"]*"|'[^']*'|[^\s"';&|<>]+)`)
	inAddress  = regexp.MustCompile(`://[^/\s:@"']*:[^/\s@"'$]+@`)
)

// IsSecret reports whether a variable looks like one that others should not read: by its name, or because
// its value is an address with a password.
func IsSecret(name, value string) bool {
	return secretName.MatchString(name) && !fileName.MatchString(name) && value != "" ||
		inAddress.MatchString(value)
}

// SecretIn returns the name of a variable that the text of a command gives a value that looks like a secret;
// address reports that it has a password in an address. "" and false: neither.
func SecretIn(text string) (name string, address bool) {
	for _, m := range assignment.FindAllStringSubmatch(text, -1) {
		if value := strings.Trim(m[2], `"'`); IsSecret(m[1], value) && !strings.ContainsAny(value, "$`") {
			return m[1], false
		}
	}
	return "", inAddress.MatchString(text)
}

// CheckSecrets returns an error if the command itself has what looks like a secret: what a line runs is part
// of an event, which is for ever.
func (l Line) CheckSecrets() error {
	name, address := SecretIn(l.Command)
	switch {
	case name != "":
		return &LineError{l.Number, fmt.Errorf("the value of %s would be in the ledger for ever: "+
			"write %s=… in a line before this one, and $%s here", name, name, name)}
	case address || inAddress.MatchString(l.Stdin):
		return &LineError{l.Number, errors.New("the password in an address would be in the ledger for ever: " +
			"write URL=… in a line before this one, and $URL here")}
	}
	return nil
}

// Split returns the variables of the line without those that look like secrets, and these.
func (l Line) Split() (env, secrets map[string]string) {
	env, secrets = l.Environment(), make(map[string]string)
	for name, value := range env {
		if IsSecret(name, value) {
			secrets[name] = value
			delete(env, name)
		}
	}
	return env, secrets
}
