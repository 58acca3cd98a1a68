# Prints the functions of test files that ask for a tier, themselves or through a function that they call.
/^func / {
	name = $0
	sub(/^func (\([^)]*\) )?/, "", name)
	sub(/[^[:alnum:]_].*/, "", name)
}
/ledgertest\.(All|Slow|Size|Sample|Long)([^[:alnum:]_]|$)/ { asks[name] }
{
	line = $0
	while (match(line, /(^|[^.[:alnum:]_])[[:alpha:]_][[:alnum:]_]*[(\[]/)) {
		callee = substr(line, RSTART, RLENGTH)
		gsub(/[^[:alnum:]_]/, "", callee)
		calls[name] = calls[name] " " callee
		line = substr(line, RSTART + RLENGTH)
	}
}
END {
	do {
		more = 0
		for (f in calls) {
			n = f in asks ? 0 : split(calls[f], called, " ")
			for (i = 1; i <= n; i++) {
				if (called[i] in asks) {
					asks[f]
					more = 1
				}
			}
		}
	} while (more)
	for (f in asks) print f
}
