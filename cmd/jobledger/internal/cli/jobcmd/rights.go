package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ownerfile"
)

// FromAny is the value of --commands-from with which a worker runs the commands of all who may write the
// ledger.
const FromAny = "any"

// Rights decides whether this process may run what the jobs of a ledger carry: the ledger must be this user's
// own, or from must be FromAny, and root runs commands from root's own ledger only. A ledger grants nothing:
// in one that others write, anybody can say to be anybody. may is asked again before each job and now and
// then, as a ledger may be opened to others later.
func Rights(ctx context.Context, service *commands.Service, from string) (may func() error, err error) {
	switch root := os.Geteuid() == 0; {
	case from != "" && from != FromAny:
		return nil, cli.Usagef("--commands-from: %q is not %s", from, FromAny)
	case from == FromAny && root:
		return nil, cli.Usagef("root runs commands from root's own ledger only, without --commands-from: " +
			"the program never changes its user, so start a worker as the user whose commands they are")
	case from == FromAny:
		return func() error { return nil }, nil
	}
	path := service.Store.Path()
	if ledger.IsServerAddress(service.Store.DSN()) {
		return nil, refused(errors.New("it is in a database that others may write"))
	}
	imported, err := ledger.Read(ctx, service.Store, func(tx *ledger.Tx) (int64, error) {
		return tx.LastOf(ctx, event.KindImported)
	})
	if err != nil {
		return nil, err
	}
	if imported > 0 {
		return nil, refused(errors.New("its events came from a file, and the user who wrote that may have put " +
			"commands into it"))
	}
	may = func() error { return refused(ownerfile.Alone(path, "-wal", "-shm")) }
	return may, may()
}

// refused is why this process does not run the commands of a ledger; nil if why is nil.
func refused(why error) error {
	if why == nil {
		return nil
	}
	name := "this user"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	err := cli.Usagef("no commands are run: %w. Others could run programs as %s", why, name)
	if os.Geteuid() == 0 {
		return cli.WithHint(err, "root runs commands from root's own ledger only")
	}
	return cli.WithHint(err, "%s", fmt.Sprintf("if all who may write the ledger may run programs as %s: "+
		"--commands-from %s", name, FromAny))
}
