package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
)

// The files of the packages' units.
const (
	workerUnit   = "jobledger-worker@"
	unitsUser    = "jobledger"
	unitsLedger  = "/var/lib/jobledger/jobs.db" // unless unitsSetting names another
	unitsSetting = "etc/jobledger/env"
	programs     = "etc/jobledger/work.d" // QUEUE is what jobledger-worker@QUEUE runs
	enabledUnits = "etc/systemd/system/multi-user.target.wants"
)

// service looks at the units of the packages, where this is the ledger that they use.
func (d *examination) service() {
	if address, is := d.unitsLedger(); is {
		d.units(d.Root)
		if !ledger.IsServerAddress(address) {
			d.unitsRights(d.Root)
		}
	}
}

// unitsOwner returns the user of the units and its group; ok is false if this is not the units' ledger.
func (d *examination) unitsOwner() (uid, gid int, ok bool) {
	if _, is := d.unitsLedger(); !is {
		return 0, 0, false
	}
	return unitsIDs(d.Root)
}

// unitsLedger returns the address of the ledger that the units of the packages use, and whether it is this
// one; false if no units are installed.
func (d *examination) unitsLedger() (address string, is bool) {
	root := d.Root
	installed := false
	for _, folder := range []string{"usr/lib", "lib", "etc"} {
		_, err := os.Stat(filepath.Join(root, folder, "systemd/system", workerUnit+".service"))
		installed = installed || err == nil
	}
	if !installed {
		return "", false
	}
	address, where := unitsLedger, filepath.Join(root, unitsLedger)
	if settings, err := os.ReadFile(filepath.Join(root, unitsSetting)); err == nil {
		for line := range strings.Lines(string(settings)) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), "JOBLEDGER_DB="); ok {
				address = strings.Trim(value, `"'`)
				where = filepath.Join(root, address)
			}
		}
	}
	if ledger.IsServerAddress(address) {
		return address, d.dsn == address
	}
	return address, d.real == where || d.Ledger == where
}

// units compares the units that are enabled with the programs that they would run.
func (d *examination) units(root string) {
	enabled := make(map[string]bool) // by the queue
	entries, err := os.ReadDir(filepath.Join(root, enabledUnits))
	if err != nil && !os.IsNotExist(err) {
		return // which units there are is not for this user
	}
	for _, e := range entries {
		if queue, ok := strings.CutPrefix(e.Name(), workerUnit); ok {
			enabled[strings.TrimSuffix(queue, ".service")] = true
		}
	}
	entries, err = os.ReadDir(filepath.Join(root, programs))
	if err != nil && !os.IsNotExist(err) {
		return
	}
	for _, e := range entries {
		queue, file := e.Name(), filepath.Join("/", programs, e.Name())
		info, err := os.Stat(filepath.Join(root, file))
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 == 0:
			d.problem(CodeUnits, "chmod 755 "+words.QuoteShell(file),
				"%s may not be executed, so the unit %s%s does not start", file, workerUnit, queue)
		case !enabled[queue]:
			d.advise(CodeUnits, "systemctl enable --now "+words.QuoteShell(workerUnit+queue),
				"%s is for the jobs of %s, and the unit %s%s is not enabled", file, queue, workerUnit, queue)
		}
		delete(enabled, queue)
	}
	for queue := range enabled {
		file := filepath.Join("/", programs, queue)
		d.problem(CodeUnits, "install -m 755 PROGRAM "+words.QuoteShell(file),
			"the unit %s%s is enabled, and there is no %s for it to run", workerUnit, queue, file)
	}
}

// unitsRights checks that the user of the units may write the ledger and its folder.
func (d *examination) unitsRights(root string) {
	uid, gid, known := unitsIDs(root)
	if !known {
		d.problem(CodeUnitsUser, "systemd-sysusers jobledger.conf", "the units' user, %s, does not exist",
			unitsUser)
		return
	}
	for _, file := range []string{filepath.Dir(d.real), d.real, d.real + "-wal", d.real + "-shm"} {
		info, err := os.Stat(file)
		if err != nil || writableBy(info, uid, gid) {
			continue
		}
		mode := "660"
		if info.IsDir() {
			mode = "2770"
		}
		path := words.QuoteShell(file)
		d.problem(CodeUnitsUser, fmt.Sprintf("chown %s:%[1]s %s && chmod %s %[2]s", unitsUser, path, mode),
			"the units run as %s, who may not write %s", unitsUser, file)
	}
}

// unitsIDs returns the numbers of the units' user and its group, as the files below root have them.
func unitsIDs(root string) (uid, gid int, known bool) {
	passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(passwd)) {
		if f := strings.Split(line, ":"); f[0] == unitsUser && len(f) > 3 {
			var errs [2]error
			uid, errs[0] = strconv.Atoi(f[2])
			gid, errs[1] = strconv.Atoi(f[3])
			return uid, gid, errs == [2]error{}
		}
	}
	return 0, 0, false
}

// replaced finds processes that use the ledger with a program that has been replaced, or removed, since.
func (d *examination) replaced() {
	for _, h := range ledger.LockHolders(d.Ledger) {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", h.PID))
		file, deleted := strings.CutSuffix(program, " (deleted)")
		if err != nil || !deleted {
			continue // of another user's processes it is not known
		}
		d.advise(CodeReplaced, fmt.Sprintf("start it again: systemctl restart its unit, or kill -TERM %d", h.PID),
			"%s (pid %d) runs a program that is no more at %s: it was replaced by another version, or removed",
			h.Program, h.PID, file)
	}
}
