package child

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"syscall"
	"time"
)

// ReapOrphans reaps processes that no goroutine waits for, every so often, until ctx ends. The first process
// of a container needs it, since it becomes the parent of all orphans there: of a command whose supervising
// parent was killed, and of programs that were started in the container by hand. Elsewhere there are none.
func ReapOrphans(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	seen := map[int]bool{}
	for {
		seen = reapOld(seen)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// reapOld reaps the zombies that are in seen, and returns the others. A zombie that this program waits for is
// reaped before it is seen twice. If not, nothing is lost: the exit status of a supervising parent is not
// used.
func reapOld(seen map[int]bool) (now map[int]bool) {
	now = map[int]bool{}
	names, err := readDirNames("/proc")
	if err != nil {
		return now
	}
	self := strconv.Itoa(os.Getpid())
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || !isZombieOf(name, self) {
			continue
		}
		if !seen[pid] {
			now[pid] = true
			continue
		}
		var status syscall.WaitStatus
		_, _ = syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	}
	return now
}

func isZombieOf(pid, parent string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 1 && string(fields[0]) == "Z" && string(fields[1]) == parent
}
