// Package meter answers with metrics, in the text format of Prometheus or in OpenMetrics: what is counted of
// the ledger, of this process and of its answers.
//
// Held by TestLabelsAreEscaped here, and by TestMetricsAreWhatTheViewsSay of the program.
package meter
