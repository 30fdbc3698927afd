package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// Objects of Kubernetes itself, whose bodies go out as protobuf.
var coreChecks = []check{
	{"a namespace is created and found", createNamespace},
	{"discovery lists versions and resources", discover},
	{"a ConfigMap with text and bytes comes back as it went", configMapRoundTrip},
	{"a Secret with text and bytes comes back as it went", secretRoundTrip},
	{"names are generated", generateName},
	{"a stale update is a conflict, and RetryOnConflict gets through", retryOnConflict},
	{"strategic, merge and JSON patches", patches},
	{"dry runs, preconditions and collections of deletes", deletes},
	{"finalizers hold a deleted object", finalizers},
	{"roles and bindings of both sorts", roles},
	{"service accounts", serviceAccounts},
}

func createNamespace(ctx context.Context, w *world) error {
	namespaces := w.typed.CoreV1().Namespaces()
	made, err := namespaces.Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace, Labels: map[string]string{"test": "clients"}},
	}, metav1.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	if err == nil && (made.UID == "" || made.CreationTimestamp.IsZero() || made.ResourceVersion == "") {
		return fmt.Errorf("it has no uid, time or version: %+v", made.ObjectMeta)
	}
	_, err = namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, metav1.CreateOptions{})
	if err := refused(err, errors.IsAlreadyExists, "AlreadyExists"); err != nil {
		return err
	}
	_, err = namespaces.Get(ctx, "no-such-namespace", metav1.GetOptions{})
	if err := refused(err, errors.IsNotFound, "NotFound"); err != nil {
		return err
	}
	_, err = w.typed.CoreV1().ConfigMaps("no-such-namespace").Create(ctx, configMap("a", nil), metav1.CreateOptions{})
	return refused(err, errors.IsNotFound, "NotFound")
}

func discover(_ context.Context, w *world) error {
	version, err := w.typed.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	lists, err := w.typed.Discovery().ServerPreferredResources()
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			found[list.GroupVersion+" "+resource.Kind] = true
		}
	}
	for _, kind := range []string{
		"v1 ConfigMap", "coordination.k8s.io/v1 Lease", "porch.kpt.dev/v1alpha1 PackageRevision", "config.porch.kpt.dev/v1alpha1 Repository",
	} {
		if !found[kind] {
			return fmt.Errorf("%s is not among them", kind)
		}
	}
	_, err = w.typed.Discovery().OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	_, err = w.typed.Discovery().OpenAPISchema()
	return expect(err == nil && version.Major != "", "version %v, OpenAPI %v", version, err)
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func configMapRoundTrip(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	want := configMap("round-trip", map[string]string{"a": "ü\n", "empty": ""})
	want.BinaryData = map[string][]byte{"b": {0, 0xff, 0xfe}}
	want.Annotations = map[string]string{"example.com/a": "b"}
	if _, err := maps.Create(ctx, want, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
		return err
	}
	got, err := maps.Get(ctx, "round-trip", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got.Data["a"] != "ü\n" || len(got.Data) != 2 || !bytes.Equal(got.BinaryData["b"], want.BinaryData["b"]) {
		return fmt.Errorf("got %v %v", got.Data, got.BinaryData)
	}
	got.Data["a"] = "changed"
	updated, err := maps.Update(ctx, got, metav1.UpdateOptions{FieldManager: "clients"})
	if err != nil {
		return err
	}
	same, err := maps.Update(ctx, updated, metav1.UpdateOptions{FieldManager: "clients"})
	if err != nil {
		return err
	}
	return expect(same.ResourceVersion == updated.ResourceVersion && updated.ResourceVersion != got.ResourceVersion,
		"an update that changes nothing made version %s of %s", same.ResourceVersion, updated.ResourceVersion)
}

func secretRoundTrip(ctx context.Context, w *world) error {
	secrets := w.typed.CoreV1().Secrets(w.namespace)
	made, err := secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "round-trip"},
		Type:       corev1.SecretTypeBasicAuth,
		Data:       map[string][]byte{"password": {0, 1, 0xff}},
		StringData: map[string]string{"username": "anna"},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return expect(string(made.Data["username"]) == "anna" && bytes.Equal(made.Data["password"], []byte{0, 1, 0xff}) &&
		made.Type == corev1.SecretTypeBasicAuth, "it is not what was sent")
}

func generateName(ctx context.Context, w *world) error {
	made, err := w.typed.CoreV1().ConfigMaps(w.namespace).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return expect(len(made.Name) == len("made-")+5, "name %q", made.Name)
}

func retryOnConflict(ctx context.Context, w *world) error {
	const writers = 8
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	stale, err := maps.Create(ctx, configMap("counter", map[string]string{}), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	patient := retry.DefaultBackoff
	patient.Steps = 50
	failures := make([]error, writers)
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			failures[i] = retry.RetryOnConflict(patient, func() error {
				current, err := maps.Get(ctx, "counter", metav1.GetOptions{})
				if err != nil {
					return err
				}
				if current.Data == nil {
					current.Data = map[string]string{}
				}
				current.Data[fmt.Sprint(i)] = "x"
				_, err = maps.Update(ctx, current, metav1.UpdateOptions{})
				return err
			})
		})
	}
	group.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	last, err := maps.Get(ctx, "counter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(last.Data) != writers {
		return fmt.Errorf("%d of %d writes are there", len(last.Data), writers)
	}
	stale.Data = map[string]string{"lost": "x"}
	_, err = maps.Update(ctx, stale, metav1.UpdateOptions{})
	return refused(err, errors.IsConflict, "Conflict")
}

func patches(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	if _, err := maps.Create(ctx, configMap("patched", map[string]string{"a": "1", "b": "2"}), metav1.CreateOptions{}); err != nil {
		return err
	}
	var last *corev1.ConfigMap
	for kind, patch := range map[types.PatchType]string{
		types.StrategicMergePatchType: `{"metadata":{"finalizers":["example.com/a"]},"data":{"s":"1","a":null}}`,
		types.MergePatchType:          `{"data":{"m":"1","b":null}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/data/j","value":"1"},{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]`,
	} {
		var err error
		if last, err = maps.Patch(ctx, "patched", kind, []byte(patch), metav1.PatchOptions{FieldManager: "clients"}); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	if fmt.Sprint(last.Data) != "map[j:1 m:1 s:1]" || last.Labels["x"] != "y" || len(last.Finalizers) != 1 {
		return fmt.Errorf("got %v %v", last.Data, last.ObjectMeta)
	}
	_, err := maps.Patch(ctx, "patched", types.StrategicMergePatchType,
		[]byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	stale := fmt.Appendf(nil, `{"metadata":{"resourceVersion":"1"},"data":{"x":"y"}}`)
	_, err = maps.Patch(ctx, "patched", types.MergePatchType, stale, metav1.PatchOptions{})
	return refused(err, errors.IsConflict, "Conflict")
}

func deletes(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	for _, name := range []string{"gone-a", "gone-b", "gone-c"} {
		object := configMap(name, nil)
		object.Labels = map[string]string{"gone": "yes"}
		if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	background := metav1.DeletePropagationBackground
	dryRun := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, PropagationPolicy: &background}
	if err := maps.Delete(ctx, "gone-a", dryRun); err != nil {
		return err
	}
	other := types.UID("00000000-0000-0000-0000-000000000000")
	err := maps.Delete(ctx, "gone-a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	if err := refused(err, errors.IsConflict, "Conflict"); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "gone-a", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		return err
	}
	byLabel := metav1.ListOptions{LabelSelector: "gone=yes"}
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, byLabel); err != nil {
		return err
	}
	left, err := maps.List(ctx, byLabel)
	if err != nil {
		return err
	}
	return expect(len(left.Items) == 0, "%d are left", len(left.Items))
}

func finalizers(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	object := configMap("held", nil)
	object.Finalizers = []string{"example.com/hold"}
	if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "held", metav1.DeleteOptions{}); err != nil {
		return err
	}
	held, err := maps.Get(ctx, "held", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if held.DeletionTimestamp.IsZero() {
		return fmt.Errorf("it has no deletionTimestamp")
	}
	held.Finalizers = nil
	if _, err := maps.Update(ctx, held, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, err = maps.Get(ctx, "held", metav1.GetOptions{})
	return refused(err, errors.IsNotFound, "NotFound")
}

func roles(ctx context.Context, w *world) error {
	rbac := w.typed.RbacV1()
	meta := metav1.ObjectMeta{Name: w.namespace + ":reader"}
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "robot", Namespace: w.namespace}}
	return all(
		func() error {
			_, err := rbac.Roles(w.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
			return err
		},
		func() error {
			binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
			_, err := rbac.RoleBindings(w.namespace).Create(ctx, binding, metav1.CreateOptions{})
			return err
		},
		func() error {
			role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: append(rules, rbacv1.PolicyRule{
				Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"},
			})}
			_, err := rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
			return err
		},
		func() error {
			ref.Kind = "ClusterRole"
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
			_, err := rbac.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
			return err
		},
		func() error { return rbac.ClusterRoleBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{}) },
		func() error { return rbac.ClusterRoles().Delete(ctx, meta.Name, metav1.DeleteOptions{}) },
	)
}

func serviceAccounts(ctx context.Context, w *world) error {
	accounts := w.typed.CoreV1().ServiceAccounts(w.namespace)
	made, err := accounts.Create(ctx, &corev1.ServiceAccount{
		ObjectMeta:                   metav1.ObjectMeta{Name: "robot"},
		ImagePullSecrets:             []corev1.LocalObjectReference{{Name: "pull"}},
		AutomountServiceAccountToken: new(bool),
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return expect(len(made.ImagePullSecrets) == 1 && made.AutomountServiceAccountToken != nil, "got %+v", made)
}
