package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// What several programs share: fields, leases and events.
var sharingChecks = []check{
	{"server-side apply: owners, conflicts with their names, force, and what is given up", serverSideApply},
	{"leader election: one leads, the other takes over", leaderElection},
	{"an event recorder: one event counts what happens again", eventRecorder},
}

func serverSideApply(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	with := func(data map[string]string) *coreapply.ConfigMapApplyConfiguration {
		return coreapply.ConfigMap("applied", w.namespace).WithData(data)
	}
	one, two := metav1.ApplyOptions{FieldManager: "one"}, metav1.ApplyOptions{FieldManager: "two"}
	if _, err := maps.Apply(ctx, with(map[string]string{"a": "1", "b": "1"}), one); err != nil {
		return err
	}
	_, err := maps.Apply(ctx, with(map[string]string{"a": "2"}), two)
	if err := refused(err, errors.IsConflict, "Conflict"); err != nil {
		return err
	}
	status := err.(errors.APIStatus).Status()
	if status.Details == nil || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != ".data.a" ||
		status.Details.Causes[0].Message != `conflict with "one"` {
		return fmt.Errorf("the conflict says %+v", status.Details)
	}
	two.Force = true
	if _, err := maps.Apply(ctx, with(map[string]string{"a": "2"}), two); err != nil {
		return err
	}
	applied, err := maps.Apply(ctx, with(map[string]string{}), one)
	if err != nil {
		return err
	}
	if fmt.Sprint(applied.Data) != "map[a:2]" || len(applied.ManagedFields) == 0 {
		return fmt.Errorf("got %v, fields %v", applied.Data, applied.ManagedFields)
	}
	// An update with the owners that came with the object goes through protobuf too.
	applied.Data["c"] = "3"
	_, err = maps.Update(ctx, applied, metav1.UpdateOptions{FieldManager: "three"})
	if err != nil {
		return err
	}
	extracted, err := coreapply.ExtractConfigMap(applied, "two")
	if err != nil {
		return err
	}
	return expect(len(extracted.Data) == 1, "extracted %v", extracted.Data)
}

func leaderElection(ctx context.Context, w *world) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	led := make(chan string, 2)
	candidate := func(name string) (context.CancelFunc, <-chan struct{}) {
		own, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: w.namespace},
			Client:     w.typed.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		go func() {
			defer close(done)
			leaderelection.RunOrDie(own, leaderelection.LeaderElectionConfig{
				Lock: lock, ReleaseOnCancel: true,
				LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { led <- name },
					OnStoppedLeading: func() {},
				},
			})
		}()
		return stop, done
	}
	stopOne, oneDone := candidate("one")
	if err := awaitEvent(ctx, led, "one"); err != nil {
		return err
	}
	_, _ = candidate("two")
	time.Sleep(500 * time.Millisecond)
	select {
	case name := <-led:
		return fmt.Errorf("%s leads as well", name)
	default:
	}
	stopOne()
	<-oneDone
	if err := awaitEvent(ctx, led, "two"); err != nil {
		return err
	}
	lease, err := w.typed.CoordinationV1().Leases(w.namespace).Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect(*lease.Spec.HolderIdentity == "two" && *lease.Spec.LeaseTransitions >= 1 && !lease.Spec.RenewTime.IsZero(),
		"the lease says %+v", lease.Spec)
}

func eventRecorder(ctx context.Context, w *world) error {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: w.typed.CoreV1().Events(w.namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "clients"})
	about, err := w.typed.CoreV1().ConfigMaps(w.namespace).Create(ctx, configMap("eventful", nil), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for range 3 {
		recorder.Eventf(about, corev1.EventTypeWarning, "Happened", "it happened to %s", about.Name)
	}
	var found *corev1.EventList
	err = until(ctx, "the event counts 3", func(ctx context.Context) (bool, error) {
		found, err = w.typed.CoreV1().Events(w.namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=eventful,reason=Happened,type=Warning",
		})
		return err == nil && len(found.Items) == 1 && found.Items[0].Count == 3, err
	})
	if err != nil {
		return fmt.Errorf("%w: %+v", err, found)
	}
	event := found.Items[0]
	return expect(event.InvolvedObject.UID == about.UID && event.Source.Component == "clients" && !event.LastTimestamp.IsZero(),
		"the event is %+v", event)
}
