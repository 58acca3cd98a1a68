package produce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/crontab"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/schedule"
)

// CrontabPause is how far from the beginning of a minute a crontab is replaced: cron looks for a new one, and
// starts what is due, at that moment and perhaps some seconds later. Tests set it to 0.
var CrontabPause = 10 * time.Second

// installedCrontab returns the crontab of this user, as cron has it.
func installedCrontab(ctx context.Context) (string, error) {
	return runCrontab(exec.CommandContext(ctx, "crontab", "-l"))
}

// replaceCrontab has cron use another crontab.
func replaceCrontab(ctx context.Context, text string) error {
	cmd := exec.CommandContext(ctx, "crontab", "-")
	cmd.Stdin = strings.NewReader(text)
	_, err := runCrontab(cmd)
	return err
}

func runCrontab(cmd *exec.Cmd) (string, error) {
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	err := cmd.Run()
	said, _, _ := strings.Cut(strings.TrimSpace(wrong.String()), "\n")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", cli.WithHint(cli.Exitf(cli.ExitUsage, "there is no program crontab in PATH"),
			"give a file: jobledger schedule import crontab FILE")
	case err != nil && strings.HasPrefix(said, "no crontab for "):
		return "", cli.Exitf(cli.ExitNothing, "%s", said)
	case err != nil:
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, said)
	}
	return out.String(), nil
}

// awaitMiddle waits until cron neither looks for crontabs nor starts anything for CrontabPause.
func (p *Verbs) awaitMiddle(ctx context.Context) error {
	if CrontabPause == 0 {
		return nil
	}
	since := p.Now().Sub(p.Now().Truncate(time.Minute))
	wait := CrontabPause - since
	if since > time.Minute-CrontabPause {
		wait += time.Minute
	}
	if wait <= 0 {
		return nil
	}
	p.Message("waiting %s: cron is at work around the full minute", words.Duration(wait.Round(time.Second)))
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// guardCommand is what cron runs while a take-over is under way: it finishes what this process began.
func (p *Verbs) guardCommand() (string, error) {
	program, err := exec.LookPath(os.Args[0])
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s --db %s schedule import crontab --finish >/dev/null 2>&1", words.QuoteShell(program),
		words.QuoteShell(cli.AbsoluteDSN(p.DB))), nil
}

// saveCrontab keeps a crontab before it is replaced, and returns where.
func (p *Verbs) saveCrontab(text string) (path string, err error) {
	folder, err := logs.StateFolder()
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, "crontab."+p.Now().Format("2006-01-02T150405"))
	return path, writePrivate(path, text)
}

// writePrivate makes a file with this content, which only its user can read.
func writePrivate(path, text string) error {
	if now, err := os.ReadFile(path); err == nil && string(now) == text {
		return os.Chmod(path, 0o600)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".jobledger-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// takeOver makes the lines with names comments in the crontab, which is still text, and their schedules tick
// from then on. It returns where the old crontab is.
func (p *Verbs) takeOver(c *cli.Context, keeper *schedule.Keeper, text string, names map[int]string) (
	saved string, err error) {
	guard, err := p.guardCommand()
	if err != nil {
		return "", err
	}
	if err := p.awaitMiddle(c.Context); err != nil {
		return "", err
	}
	switch now, err := installedCrontab(c.Context); {
	case err != nil:
		return "", err
	case now != text:
		return "", cli.Exitf(cli.ExitBusy, "the crontab was changed meanwhile; cron still runs it")
	}
	if saved, err = p.saveCrontab(text); err != nil {
		return "", fmt.Errorf("keep the old crontab: %w", err)
	}
	if err := replaceCrontab(c.Context, crontab.Take(text, names, p.Now(), guard)); err != nil {
		return "", err
	}
	return saved, p.finishTakeOver(c, keeper)
}

// finishTakeOver resumes the schedules of the lines that cron does not run any more, and then takes the guard
// out of the crontab.
func (p *Verbs) finishTakeOver(c *cli.Context, keeper *schedule.Keeper) error {
	text, err := installedCrontab(c.Context)
	if err != nil {
		return err
	}
	waiting, guarded := crontab.PendingLines(text)
	if len(waiting) == 0 && !guarded {
		return nil
	}
	since := make(map[string]time.Time)
	for _, w := range waiting {
		since[w.Name] = w.Since
	}
	if _, err := keeper.ResumeSince(c.Context, since, c.String("reason")); err != nil {
		return cli.WithHint(err, "cron does not run these lines any more, and has this tried again each minute")
	}
	if text, err = installedCrontab(c.Context); err != nil { // an editor may have saved it
		return err
	}
	return replaceCrontab(c.Context, crontab.Finish(text))
}
