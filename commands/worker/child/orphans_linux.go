package child

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"syscall"
	"time"
)

// ReapOrphans takes the ends of processes that nobody else waits for, until ctx ends. The first process of a container
// must do that, since there they come to it: those of a command whose supervising parent was killed, and those that
// somebody has started in the container by hand. A worker that is not the first process has none.
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

// reapOld takes those that it has seen before, and returns those that it has not. A child of our own is waited for, so
// it does not stand there for long; and whoever waits for a supervising parent needs nothing but its being gone.
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
