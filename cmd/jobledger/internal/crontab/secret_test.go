package crontab_test

import (
	"testing"

	"jobledger/cmd/jobledger/internal/crontab"
)

func TestSecrets(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"BORG_PASSPHRASE", "x", true}, {"AWS_SECRET_ACCESS_KEY", "x", true}, {"token", "x", true},
		{"API_KEY", "x", true}, {"DATABASE_URL", "postgres://ada:pw@db/x", true}, {"PATH", "/usr/bin", false},
		{"DATABASE_URL", "postgres://db/x", false}, {"PGPASSFILE", "/home/ada/.pgpass", false},
		{"MAILTO", "ada@example.com", false}, {"API_KEY", "", false}, {"KEYBOARD", "de", false},
	} {
		if got := crontab.IsSecret(c.name, c.value); got != c.want {
			t.Errorf("%s=%s: %t", c.name, c.value, got)
		}
	}
	for command, want := range map[string]bool{
		"PGPASSWORD=hunter2 pg_dump x":          true,
		`mysqldump --password="hunter2" x`:      true,
		"curl https://ada:pw@example.com/":      true,
		"PGPASSWORD=$PW pg_dump x":              false,
		`mysqldump --password="$(cat /etc/pw)"`: false,
		"x --token-file=/etc/token":             false,
		"curl https://example.com/":             false,
		"PGPASSFILE=/etc/pgpass pg_dump":        false,
		"scp ada@example.com:x y":               false,
	} {
		l := crontab.Line{Command: command}
		if got := l.CheckSecrets(); (got != nil) != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}
