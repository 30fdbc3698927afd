package main

import (
	"context"
	"net/http"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wireChecks come last: the other checks are worth less if their clients did not send what they were meant to.
var wireChecks = []check{
	{"bodies went as protobuf, and informers used sendInitialEvents", wireUsed},
	{"the namespace goes with all that is in it", namespaceGoes},
}

// wire counts requests of a sort.
type wire struct {
	protobufBodies, initialEvents atomic.Int64
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Header.Get("Content-Type") == "application/vnd.kubernetes.protobuf" {
			w.protobufBodies.Add(1)
		}
		if request.URL.Query().Get("sendInitialEvents") == "true" {
			w.initialEvents.Add(1)
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func wireUsed(_ context.Context, w *world) error {
	// One of the watches is that of a check, the others are those of informers.
	bodies, watches := w.wire.protobufBodies.Load(), w.wire.initialEvents.Load()
	return expect(bodies > 50 && watches > 3, "%d bodies in protobuf, %d watches with initial events", bodies, watches)
}

func namespaceGoes(ctx context.Context, w *world) error {
	namespaces := w.typed.CoreV1().Namespaces()
	if err := namespaces.Delete(ctx, w.namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return until(ctx, "the namespace is gone", func(ctx context.Context) (bool, error) {
		list, err := namespaces.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + w.namespace})
		return err == nil && len(list.Items) == 0, err
	})
}
