package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const gate = "example.com/Checked"

// Controllers made with controller-runtime.
var controllerChecks = []check{
	{"CreateOrUpdate, Apply, and patches with an optimistic lock", controllerClient},
	{"a manager with a leader leads a package revision through a gate", managerReconciles},
	{"a finalizer of a package revision holds it", revisionFinalizer},
	{"owners take what they own with them", garbageCollection},
}

var revisionKind = schema.GroupVersionKind{Group: porch, Version: version, Kind: "PackageRevision"}

func emptyRevision() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(revisionKind)
	return object
}

func controllerClient(ctx context.Context, w *world) error {
	c, err := client.New(w.config, client.Options{})
	if err != nil {
		return err
	}
	object := configMap("controlled", nil)
	object.Namespace = w.namespace
	for _, want := range []controllerutil.OperationResult{
		controllerutil.OperationResultCreated, controllerutil.OperationResultNone,
	} {
		got, err := controllerutil.CreateOrUpdate(ctx, c, object, func() error {
			object.Data = map[string]string{"a": "b"}
			return nil
		})
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s instead of %s", got, want)
		}
	}
	stale := object.DeepCopy()
	changed := object.DeepCopy()
	changed.Data["a"] = "c"
	if err := c.Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	object = stale.DeepCopy()
	object.Data["a"] = "d"
	err = c.Patch(ctx, object, client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{}))
	if err := refused(err, errors.IsConflict, "Conflict"); err != nil {
		return err
	}
	revision := newRevision("applied", "v1", initTask())
	revision.SetNamespace(w.namespace)
	if err := c.Create(ctx, revision); err != nil {
		return err
	}
	applied := emptyRevision()
	applied.SetName(revision.GetName())
	applied.SetNamespace(w.namespace)
	applied.SetLabels(map[string]string{"applied": "yes"})
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("clients"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply of a package revision: %w", err)
	}
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(revisionKind.GroupVersion().WithKind("PackageRevisionList"))
	if err := c.List(ctx, found, client.InNamespace(w.namespace), client.MatchingLabels{"applied": "yes"}); err != nil {
		return err
	}
	return expect(len(found.Items) == 1 && found.Items[0].GetName() == revision.GetName(), "%d have the label", len(found.Items))
}

// gatekeeper gives the condition that package revisions with its gate wait for.
type gatekeeper struct {
	client.Client
	recorder events.EventRecorder
}

func (g *gatekeeper) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	revision := emptyRevision()
	if err := g.Get(ctx, request.NamespacedName, revision); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !hasGate(revision) || text(revision, "spec", "lifecycle") != "Draft" || conditionStatus(revision, gate) == "True" {
		return ctrl.Result{}, nil
	}
	conditions, _, err := unstructured.NestedSlice(revision.Object, "status", "conditions")
	if err != nil {
		return ctrl.Result{}, err
	}
	conditions = append(withoutCondition(conditions, gate), map[string]any{
		"type": gate, "status": "True", "reason": "Checked", "message": "by a controller in Go",
	})
	if err := unstructured.SetNestedSlice(revision.Object, conditions, "status", "conditions"); err != nil {
		return ctrl.Result{}, err
	}
	if err := g.Status().Update(ctx, revision); err != nil {
		if errors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
		}
		return ctrl.Result{}, err
	}
	g.recorder.Eventf(revision, nil, corev1.EventTypeNormal, "Checked", "Check", "the gate is %s", "open")
	return ctrl.Result{}, nil
}

func hasGate(revision *unstructured.Unstructured) bool {
	gates, _, _ := unstructured.NestedSlice(revision.Object, "spec", "readinessGates")
	for _, each := range gates {
		if g, ok := each.(map[string]any); ok && g["conditionType"] == gate {
			return true
		}
	}
	return false
}

func withoutCondition(conditions []any, kind string) []any {
	rest := []any{}
	for _, each := range conditions {
		if condition, ok := each.(map[string]any); ok && condition["type"] != kind {
			rest = append(rest, each)
		}
	}
	return rest
}

func managerReconciles(ctx context.Context, w *world) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	released := make(chan error, 1)
	manager, err := ctrl.NewManager(w.config, ctrl.Options{
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "gatekeeper",
		LeaderElectionNamespace:       w.namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	keeper := &gatekeeper{Client: manager.GetClient(), recorder: manager.GetEventRecorder("gatekeeper")}
	if err := ctrl.NewControllerManagedBy(manager).For(emptyRevision()).Named("gatekeeper").Complete(keeper); err != nil {
		return err
	}
	go func() { released <- manager.Start(ctx) }()

	revision := newRevision("gated", "v1", initTask())
	if err := unstructured.SetNestedSlice(revision.Object, []any{map[string]any{"conditionType": gate}}, "spec", "readinessGates"); err != nil {
		return err
	}
	made, err := w.revisions().Create(ctx, revision, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if !hasGate(made) {
		return fmt.Errorf("it has no gate: %v", made.Object["spec"])
	}
	name := made.GetName()
	err = until(ctx, "the controller has given the condition", func(ctx context.Context) (bool, error) {
		revision, err := w.revisions().Get(ctx, name, metav1.GetOptions{})
		return err == nil && conditionStatus(revision, gate) == "True", err
	})
	if err != nil {
		return err
	}
	kptfile, err := w.contents().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	files, _, _ := unstructured.NestedStringMap(kptfile.Object, "spec", "resources")
	if err := contains(files["Kptfile"], gate, "by a controller in Go"); err != nil {
		return err
	}
	if err := w.move(ctx, name, "Proposed"); err != nil {
		return err
	}
	if err := w.move(ctx, name, "Published", "approval"); err != nil {
		return err
	}
	err = until(ctx, "the event is served", func(ctx context.Context) (bool, error) {
		served, err := w.typed.EventsV1().Events(w.namespace).List(ctx, metav1.ListOptions{FieldSelector: "regarding.name=" + name + ",reason=Checked"})
		return err == nil && len(served.Items) == 1 && served.Items[0].Note == "the gate is open", err
	})
	if err != nil {
		return err
	}
	err = until(ctx, "the event is served as a core event", func(ctx context.Context) (bool, error) {
		served, err := w.typed.CoreV1().Events(w.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name + ",reason=Checked"})
		return err == nil && len(served.Items) == 1 && served.Items[0].Message == "the gate is open", err
	})
	if err != nil {
		return err
	}
	cancel()
	return <-released
}

func revisionFinalizer(ctx context.Context, w *world) error {
	c, err := client.New(w.config, client.Options{})
	if err != nil {
		return err
	}
	revision := newRevision("held", "v1", initTask())
	revision.SetNamespace(w.namespace)
	if err := c.Create(ctx, revision); err != nil {
		return err
	}
	before := revision.DeepCopy()
	controllerutil.AddFinalizer(revision, "example.com/hold")
	if err := c.Patch(ctx, revision, client.MergeFrom(before)); err != nil {
		return err
	}
	if err := c.Delete(ctx, revision); err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: w.namespace, Name: revision.GetName()}
	if err := c.Get(ctx, key, revision); err != nil {
		return err
	}
	if revision.GetDeletionTimestamp().IsZero() {
		return fmt.Errorf("it has no deletionTimestamp")
	}
	controllerutil.RemoveFinalizer(revision, "example.com/hold")
	if err := c.Update(ctx, revision); err != nil {
		return err
	}
	return refused(c.Get(ctx, key, revision), errors.IsNotFound, "NotFound")
}

func garbageCollection(ctx context.Context, w *world) error {
	c, err := client.New(w.config, client.Options{})
	if err != nil {
		return err
	}
	owner, owned := configMap("owner", nil), newRevision("owned", "v1", initTask())
	owner.Namespace = w.namespace
	owned.SetNamespace(w.namespace)
	if err := c.Create(ctx, owner); err != nil {
		return err
	}
	if err := controllerutil.SetControllerReference(owner, owned, c.Scheme()); err != nil {
		return err
	}
	if err := c.Create(ctx, owned); err != nil {
		return err
	}
	if len(owned.GetOwnerReferences()) != 1 {
		return fmt.Errorf("the owner was not kept")
	}
	if err := c.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return err
	}
	return until(ctx, "the owned package revision is gone", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(owned), owned)
		return errors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}
