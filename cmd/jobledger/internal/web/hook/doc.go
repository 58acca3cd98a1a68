// Package hook sends the events of a ledger to addresses that its user names: webhooks.
//
//	d := &hook.Dispatcher{Service: service, Path: hook.PathOf("jobs.db"), Name: "build7"}
//	err := d.Run(ctx) // until ctx ends
//
// A delivery is a job in the queue webhook.NAME of the same ledger. So a delivery is as durable as its event,
// it is retried, and every page and command shows it. Its key names the event: whatever is enqueued a second
// time, after a kill or by another server, is there already. How far a webhook has come follows from its
// newest delivery, so there is no other state.
//
// Files in reading order: endpoint.go (what a webhook is), file.go (where they are kept), address.go (which
// addresses may be reached), message.go (the body and its signature), send.go (one request), feed.go (events
// become deliveries), deliver.go (deliveries are sent), dispatcher.go.
//
// Held by TestWebhookGetsEachEventOnce, TestWebhookGoesOnAfterFailures,
// TestWebhookReachesPublicAddressesOnly and TestSecretIsRotated.
package hook
