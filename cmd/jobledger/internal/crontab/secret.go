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

// CheckSecrets returns an error if the command itself has what looks like a secret: what a line runs is part
// of an event, which is for ever.
func (l Line) CheckSecrets() error {
	for _, m := range assignment.FindAllStringSubmatch(l.Command, -1) {
		if value := strings.Trim(m[2], `"'`); IsSecret(m[1], value) && !strings.ContainsAny(value, "$`") {
			return &LineError{l.Number, fmt.Errorf("the value of %s would be in the ledger for ever: "+
				"write %s=… in a line before this one, and $%s here", m[1], m[1], m[1])}
		}
	}
	if inAddress.MatchString(l.Command + " " + l.Stdin) {
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
