package door

// Doc is what the description of the API says of a route. The document itself is made of it by a test of
// package web.
type Doc struct {
	ID      string         // the name of the operation, a verb and a noun, for ever; "": it is not described
	Summary string         // a sentence or some
	About   string         // more of them; "": there are none
	Query   []string       // its parameters, which are in [Params]; those of the path are found there, too
	Headers []string       // of the request, likewise
	Body    any            // of the request: a value of its type; nil: it has none, or Example is any bytes
	Line    string         // the body may also be lines of JSON, each such a value: an example of one
	Maybe   bool           // the body may be left out
	Example string         // of the body
	Answer  any            // a value of its type; a []any: it is one of these; nil: it is of the media types
	List    bool           // the answer is a [Page] of such values, or lines of JSON
	Types   []string       // media types of the answer; nil: those of the route
	Says    map[int]string // the answer, by its status; nil: 200, which says the Summary
	Gives   []string       // headers of the answer, besides those that all of its kind have
	Refuses []int          // statuses of its problems, besides those that all of its kind have
}

// Param is a parameter of a path or a query, or a header.
type Param struct {
	About  string
	Schema string // as JSON; "": a string
	Needed bool
}

// Schemas of parameters.
const (
	aWhole   = `{"type": "integer"}`
	aPage    = `{"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}`
	aBoolean = `{"type": "boolean"}`
	aTexts   = `{"type": "array", "items": {"type": "string"}}`
	aULID    = `{"type": "string", "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"}`
)

// Params are the parameters and headers of all routes. A name after that of an operation and a dot is that of
// the operation which means something else by it than others.
var Params = map[string]Param{
	"at":       {About: "The moment: a time or pos:N, as --as-of takes it."},
	"from":     {About: "From this time or pos:N on."},
	"to":       {About: "Up to this time or pos:N."},
	"queue":    {About: "Of this queue only."},
	"given_up": {About: "Only the causes by which jobs failed for good, last.", Schema: aBoolean},
	"worker":   {About: "Of this worker only: its name, or the boot of a process."},
	"job":      {About: "Only of this job."},
	"actor":    {About: "Only what this actor did."},
	"limit":    {About: "How many on a page.", Schema: aPage},
	"px": {About: "The width of the picture in columns: claims shorter than one column are joined.",
		Schema: `{"type": "integer", "minimum": 1, "maximum": 8192}`},
	"kind": {About: "Only of this kind, or with - before it all but this kind; may be repeated.",
		Schema: aTexts},
	"after":  {About: "Only after this position."},
	"bodies": {About: "With payloads, results and salts, which needs the scope bodies.", Schema: aBoolean},

	"{job}":     {About: "The id of the job, or its beginning."},
	"{queue}":   {About: "The name of the queue."},
	"{group}":   {About: "The name of the group."},
	"reason":    {About: "Why, as the events say it."},
	"{report}":  {About: "The name of the report, as the command report lists them."},
	"{pos}":     {About: "The position.", Schema: `{"type": "integer", "format": "int64", "minimum": 1}`},
	"{attempt}": {About: "The number of the attempt.", Schema: `{"type": "integer", "minimum": 1}`},
	"{stream}": {About: "Standard output or standard error.",
		Schema: `{"type": "string", "enum": ["out", "err"]}`},
	"{schedule}": {About: "The name of the schedule."},
	"listScheduleTicks.last": {About: "How many of the last ones; 24 by default.",
		Schema: `{"type": "integer", "minimum": 1, "maximum": 1000, "default": 24}`},
	"{token}": {About: "The lease token of the claim."},
	"{boot}":  {About: "The boot of the process: a ULID of its own, in capitals.", Schema: aULID},

	"putJob.{job}":        {About: "A ULID in capitals, which the client makes.", Schema: aULID},
	"endClaim.{job}":      {About: "The id of the job, whole."},
	"takeOverClaim.{job}": {About: "The id of the job, whole."},

	"If-Match": {About: "The seq of the job as it was seen, or the ETag of what is set of a queue, 0 if it " +
		"never was; 412 if it has moved on."},
	"Idempotency-Key": {About: "The key of the job, if the body has none."},
	"traceparent":     {About: "The trace of the job, kept as its tag traceparent."},
	"Prefer": {About: "With return=minimal (RFC 7240), jobs in the answer leave out what is null, 0, " +
		"false or empty, and job, which is the id again; a claim leaves out the results of earlier " +
		"runs. The answer says so in Preference-Applied."},

	"depth": {About: "How many steps in each direction.",
		Schema: `{"type": "integer", "minimum": 1, "maximum": 10, "default": 3}`},
	"listQueues.paused":   {About: "Only queues that are paused.", Schema: aBoolean},
	"listWorkers.all":     {About: "Also workers that have stopped.", Schema: aBoolean},
	"listHeldClaims.boot": {About: "The boot of the process.", Needed: true},

	"listJobs.queue": {About: "Only of this queue; may be repeated.", Schema: aTexts},
	"listJobs.state": {About: "Only in this state; may be repeated.", Schema: aTexts},
	"listJobs.tag":   {About: "Only with this tag, as K=V; may be repeated.", Schema: aTexts},
	"listJobs.key":   {About: "Only with this key."},
	"listJobs.group": {About: "Only of this group."},
	"listJobs.from":  {About: "Only at or after this moment."},
	"listJobs.to":    {About: "Only at or before this moment."},
	"listJobs.by": {About: "What from and to are about: when a job was enqueued, or had finished, or met the " +
		"failure that failure or last_failure asks for. With one of these it is failed, or else enqueued.",
		Schema: `{"type": "string", "enum": ["enqueued", "finished", "failed"]}`},
	"listJobs.failure": {About: "Only those that met a failure with this fingerprint, whatever became of them."},
	"listJobs.last_failure": {About: "Only if the last failure has this fingerprint, and the job has neither " +
		"been retried by an operator nor succeeded since."},
	"listJobs.error": {About: "Only if the last failure has this code."},
	"listJobs.exit": {About: "Only if the command of the last failure exited with this number.",
		Schema: aWhole},
	"listJobs.host": {About: "Only if the owner, or the last one, ran on this host."},
	"listJobs.find": {About: "Only what all of these terms select, as --find of the command list takes them."},

	"listEvents.from": {About: "Only at or after this moment."},
	"listEvents.to":   {About: "Only at or before this moment."},
	"listEvents.last": {About: "The last so many.",
		Schema: `{"type": "integer", "minimum": 1, "maximum": 1000}`},

	"listAttempts.from": {About: "Only those live at or after this moment."},
	"listAttempts.to":   {About: "Only those live at or before this moment."},
	"outcome": {About: "Only attempts with one of these outcomes: succeeded, failed, released, " +
		"reclaimed, cancelled, or open; may be repeated.", Schema: aTexts},
	"code":    {About: "Only those that ended with this error code, or for this reason."},
	"overlap": {About: "Only those that ran at the same time as another of the same job.", Schema: aBoolean},

	"listAttempts.after":    {About: "Only those after this claim: the value of next.", Schema: aWhole},
	"listJobAttempts.after": {About: "Only those after this claim: the value of next.", Schema: aWhole},

	"getJobLog.after":    {About: "Leaves out this many bytes at the beginning.", Schema: aWhole},
	"getJobLog.follow":   {About: "Go on until the attempt ends.", Schema: aBoolean},
	"exportHistory.from": {About: "At or after this moment."},
	"exportHistory.to":   {About: "At or before this moment."},
	"exportHistory.format": {About: "What it is written as.",
		Schema: `{"type": "string", "enum": ["jsonl", "csv", "trace", "otlp"], "default": "jsonl"}`},
	"getIncident.window_only": {About: "Only what happened within the window.", Schema: aBoolean},

	"listMoments.rows": {About: "2 is two rows by time: what people and machines did, and what failed or came " +
		"too late. Without it there is one row, by position.",
		Schema: `{"type": "integer", "minimum": 1, "maximum": 2}`},
	"getDepth.px": {About: "How many moments.", Schema: aPage},
	"getDiff.limit": {About: "How many jobs of each cell are named.",
		Schema: `{"type": "integer", "minimum": 0, "maximum": 1000, "default": 5}`},
	"getLanes.group": {About: "What the rows are grouped by: the host of the worker, the queue of the jobs, " +
		"or nothing.",
		Schema: `{"type": "string", "enum": ["host", "queue", "none"], "default": "host"}`},
	"getSeries.metric": {About: "Only this one; may be repeated.",
		Schema: `{"type": "array", "items": {"type": ` +
			`"string", "enum": ["queued", "ready", "later", "held", "succeeded", "failed", "lost", "ended", ` +
			`"run_p50", "run_p99", "claimed", "wait_p50", "wait_p90", "wait_p99"]}}`},
	"getSeries.step": {About: "How long a step is, as 30s or 5m; by default there are 120 steps."},

	"waitForReady.queue":      {About: "A queue; may be repeated.", Schema: aTexts, Needed: true},
	"waitForReady.version":    {About: "The version of the worker."},
	"waitForReady.capability": {About: "A label that the worker has; may be repeated.", Schema: aTexts},
	"waitForReady.wait": {About: "How many seconds to wait.",
		Schema: `{"type": "number", "minimum": 0, "maximum": 60}`},
}
