/* Runs cronie's crond with a clock of its own: what crond would start between two moments, printed as
 * "seconds since 1970, a tab, the command", without waiting for them. It is linked in place of what crond asks
 * of the machine; ticks.sh says how. */
#include <config.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "globals.h"
#include "funcs.h"

static time_t now, end;

/* What cronie reads: a line for each command, with its settings, in the order of the crontab. */
static void dump(entry *e) {
	char **env;
	if (!e)
		return;
	dump(e->next);
	printf("%s%s%s", e->flags & WHEN_REBOOT ? "@reboot " : "", e->flags & MAIL_WHEN_ERR ? "-n " : "", e->cmd);
	for (env = e->envp; *env; env++)
		printf("\t%s", *env);
	printf("\n");
}

time_t __wrap_time(time_t *t) {
	if (now == 0) {
		now = atol(getenv("CLOCK_FROM"));
		end = atol(getenv("CLOCK_TO"));
	}
	if (t)
		*t = now;
	return now;
}

unsigned __wrap_sleep(unsigned seconds) {
	now += seconds;
	if (now >= end) {
		fflush(stdout);
		_exit(0);
	}
	return 0;
}

int __wrap_load_database(cron_db *db) {
	struct passwd pw;
	int fd;
	if (db->head)
		return 0;
	memset(&pw, 0, sizeof pw);
	pw.pw_name = "ada";
	pw.pw_passwd = "";
	pw.pw_dir = "/";
	if ((fd = open(getenv("CLOCK_CRONTAB"), O_RDONLY)) < 0)
		_exit(1);
	db->head = load_user(fd, strstr(getenv("CLOCK_CRONTAB"), ".system") ? NULL : &pw, "ada", "ada", "crontab");
	if (getenv("CLOCK_READ")) {
		dump(db->head ? db->head->crontab : NULL);
		fflush(stdout);
		_exit(0);
	}
	return 1;
}

void __wrap_job_add(entry *e, user *u) {
	(void)u;
	printf("%ld\t%s\n", (long)(now / 60 * 60), e->cmd);
}

int __wrap_job_runqueue(void) { return 0; }
void __wrap_acquire_daemonlock(int x) { (void)x; }
void __wrap_set_cron_uid(void) {}
void __wrap_check_spool_dir(void) {}
void __wrap_log_it(const char *a, PID_T b, const char *c, const char *d, int e) {
	(void)a, (void)b, (void)d, (void)e;
	if (strncmp(c, "bad ", 4) == 0 || strncmp(c, "missing ", 8) == 0)
		printf("cronie: %s\n", c);
}
int __wrap_access(const char *name, int mode) { (void)name, (void)mode; return 0; }
