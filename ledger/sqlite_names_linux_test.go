package ledger_test

import (
	"testing"

	"jobledger/ledger"
)

// If the kernel does not say whether a file is a mount point, the list of mounts does.
func TestMountsHaveFile(t *testing.T) {
	const mounts = `21 1 8:1 / / rw,relatime - ext4 /dev/root rw
35 21 8:1 /srv/jobs.db /data/jobs.db rw,relatime shared:1 - ext4 /dev/root rw
36 21 8:1 /srv /with\040space\134/jobs.db rw - ext4 /dev/root rw
`
	for path, want := range map[string]bool{"/data/jobs.db": true, "/data": false, "/srv/jobs.db": false,
		`/with space\/jobs.db`: true, "/data/jobs.db2": false} {
		if got := ledger.MountsHave(mounts, path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}
