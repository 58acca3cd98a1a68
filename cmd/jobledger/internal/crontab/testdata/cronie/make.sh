#!/bin/sh
# Writes ../read.txt and ../ticks.txt: what cronie reads in the crontabs of crontabs.txt, and when its crond
# starts the lines of ticks.crontab in the year 2026, in three zones. It needs git, a C compiler, autoconf,
# automake, and the network for cronie's source, unless CRONIE is a folder in which it was built.
# cronnext, which goes by the minutes on the wall alone, is asked for the same months: "=" in ticks.txt says
# that it names the same ticks, a number how many it names.
set -eu
cd "$(dirname "$0")"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${CRONIE:-}" ]; then
	CRONIE=$work/cronie
	git clone -q https://github.com/cronie-crond/cronie "$CRONIE"
	(cd "$CRONIE" && git checkout -q 5f9f16bf && ./autogen.sh && ./configure && make) >"$work/log" 2>&1
fi
wrap=
for name in time sleep load_database job_add job_runqueue acquire_daemonlock set_cron_uid check_spool_dir log_it access
do
	wrap="$wrap -Wl,--wrap=$name"
done
(cd "$CRONIE/src" && cc -I.. -I. -o "$work/clock" "$here/clock.c" cron.o database.o user.o entry.o env.o misc.o \
	job.o do_command.o popen.o pw_dup.o security.o ../cronie_common.o $wrap)

# What it reads: each crontab of its own file, as a line for each command and for each complaint.
python3 - "$work" <<'END'
import sys
for part in open("../crontabs.txt", encoding="utf-8", newline="").read().split("== ")[1:]:
    name, _, text = part.partition("\n")
    system = text.startswith("system\n")
    text = text.removeprefix("system\n").replace("␍", "\r").replace("␄\n", "").replace("␀", "\0")
    open(f"{sys.argv[1]}/tab." + name.replace(" ", "_").replace("/", "_") + (".system" if system else ""), "w",
         newline="").write(text)
END
grep '^== ' ../crontabs.txt | cut -c4- | while read -r name; do
	file=$work/tab.$(echo "$name" | tr ' /' '__')
	[ -f "$file" ] || file=$file.system
	echo "== $name"
	env -i CLOCK_READ=1 CLOCK_CRONTAB="$file" "$work/clock" -n 2>&1
done >../read.txt

# When it runs what.
months() { # of each month of 2026 in the zone $TZ: its name, its first moment, that of the next month
	for m in 1 2 3 4 5 6 7 8 9 10 11 12; do
		printf '2026-%02d %s %s\n' $m "$(date -d "2026-$m-1" +%s)" "$(date -d "2026-$m-1 + 1 month" +%s)"
	done
}
sum() { sort -n -u | sha256sum | cut -c1-16; }
{
	echo "# zone, month, how many ticks, a digest of them, cronnext, line; made by cronie/make.sh"
	for TZ in Europe/Berlin America/New_York Australia/Lord_Howe; do
		export TZ
		CLOCK_FROM=$(date -d '2025-12-31' +%s) CLOCK_TO=$(date -d '2027-01-02' +%s) \
			CLOCK_CRONTAB=../ticks.crontab "$work/clock" -n >"$work/ticks"
		cut -f2 "$work/ticks" | sort -u | while read -r line; do
			months | while read -r month from to; do
				awk -F'\t' -v l="$line" -v f="$from" -v t="$to" '$2 == l && $1 >= f && $1 < t { print $1 }' \
					"$work/ticks" | sort -n -u >"$work/crond"
				"$CRONIE/src/cronnext" -f -j "$line" -t "$from" -q $((to - 1)) ../ticks.crontab |
					sed -n 's/^ *next: //p' | sort -n -u >"$work/next"
				n=$(wc -l <"$work/next")
				cmp -s "$work/crond" "$work/next" && n="="
				echo "$TZ $month $(wc -l <"$work/crond") $(sum <"$work/crond") $n $line"
			done
		done
	done
} >../ticks.txt
