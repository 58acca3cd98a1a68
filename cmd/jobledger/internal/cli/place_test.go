package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// Without --db the ledger of the folder comes first, then the user's, then that of the package; none is made
// but in the folder.
func TestFindDB(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	before := packageDB
	t.Cleanup(func() { packageDB = before })
	packageDB = filepath.Join(dir, "package.db")
	own := filepath.Join(dir, "state", "jobledger", "jobs.db")
	for _, step := range []struct{ path, want string }{
		{"", DefaultDB}, {packageDB, packageDB}, {own, own}, {filepath.Join(dir, DefaultDB), DefaultDB},
	} {
		if step.path != "" {
			if err := os.MkdirAll(filepath.Dir(step.path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(step.path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := findDB(); got != step.want {
			t.Errorf("with %s: got %s, want %s", step.path, got, step.want)
		}
	}
}
