package main

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	porch      = "porch.kpt.dev"
	config     = "config.porch.kpt.dev"
	version    = "v1alpha1"
	repository = "blueprints"
)

// Packages through a client that knows nothing of their kinds.
var packageChecks = []check{
	{"a repository is registered and becomes Ready", registerRepository},
	{"a package revision is made, under the name of the server", createRevision},
	{"its content is read, replaced and patched by file", editContents},
	{"an update of content needs the current version", staleContents},
	{"propose, and approve by the sub-resource only", approveRevision},
	{"published content and lifecycle are protected", protectPublished},
	{"field selectors, the label of the latest and a table of packages", findRevisions},
	{"deletion is proposed, then done", deleteRevision},
}

func (w *world) revisions() dynamic.ResourceInterface {
	return w.packageResource("packagerevisions")
}

func (w *world) contents() dynamic.ResourceInterface {
	return w.packageResource("packagerevisionresources")
}

func (w *world) packageResource(resource string) dynamic.ResourceInterface {
	return w.dynamic.Resource(schema.GroupVersionResource{Group: porch, Version: version, Resource: resource}).Namespace(w.namespace)
}

// newObject has a spec and the name that is given.
func newObject(group, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + version, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func newRevision(pkg, workspace string, task map[string]any) *unstructured.Unstructured {
	return newObject(porch, "PackageRevision", "", map[string]any{
		"packageName": pkg, "workspaceName": workspace, "repository": repository, "tasks": []any{task},
	})
}

func initTask() map[string]any {
	return map[string]any{"type": "init", "init": map[string]any{"description": "for tests"}}
}

func revisionName(pkg, workspace string) string {
	return repository + "." + pkg + "." + workspace
}

func text(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	return fmt.Sprint(value)
}

func registerRepository(ctx context.Context, w *world) error {
	repositories := w.dynamic.Resource(schema.GroupVersionResource{Group: config, Version: version, Resource: "repositories"}).Namespace(w.namespace)
	object := newObject(config, "Repository", repository, map[string]any{
		"type": "git", "git": map[string]any{"repo": w.git, "branch": "main", "secretRef": map[string]any{"name": ""}},
	})
	if _, err := repositories.Create(ctx, object, metav1.CreateOptions{}); err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	return until(ctx, "the repository is Ready", func(ctx context.Context) (bool, error) {
		object, err := repositories.Get(ctx, repository, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return conditionStatus(object, "Ready") == "True", nil
	})
}

func conditionStatus(object *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range conditions {
		if condition, ok := each.(map[string]any); ok && condition["type"] == kind {
			return fmt.Sprint(condition["status"])
		}
	}
	return ""
}

func createRevision(ctx context.Context, w *world) error {
	made, err := w.revisions().Create(ctx, newRevision("web", "v1", initTask()), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	name := revisionName("web", "v1")
	if made.GetName() != name || text(made, "spec", "lifecycle") != "Draft" || made.GetUID() == "" {
		return fmt.Errorf("got %s %s %s", made.GetName(), text(made, "spec", "lifecycle"), made.GetUID())
	}
	contents, err := w.contents().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if contents.GetUID() != made.GetUID() {
		return fmt.Errorf("the content has another uid")
	}
	_, err = w.revisions().Create(ctx, newRevision("web", "v1", initTask()), metav1.CreateOptions{})
	if err == nil {
		return fmt.Errorf("a second one of the same workspace was made")
	}
	return nil
}

func editContents(ctx context.Context, w *world) error {
	name := revisionName("web", "v1")
	contents, err := w.contents().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: b\n"
	if err := unstructured.SetNestedField(contents.Object, manifest, "spec", "resources", "a.yaml"); err != nil {
		return err
	}
	updated, err := w.contents().Update(ctx, contents, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	patch := `{"spec":{"resources":{"b.yaml":"# nothing\n"}}}`
	patched, err := w.contents().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	if updated.GetResourceVersion() == contents.GetResourceVersion() || updated.GetResourceVersion() == patched.GetResourceVersion() {
		return fmt.Errorf("changes make no new version")
	}
	files, _, err := unstructured.NestedStringMap(patched.Object, "spec", "resources")
	if err != nil {
		return err
	}
	if !strings.Contains(files["Kptfile"], "kind: Kptfile") || files["a.yaml"] != manifest || files["b.yaml"] == "" {
		return fmt.Errorf("the files are %v", files)
	}
	revision, err := w.revisions().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect(conditionStatus(revision, "Rendered") == "True", "it is not rendered: %s", text(revision, "status"))
}

func staleContents(ctx context.Context, w *world) error {
	name := revisionName("web", "v1")
	stale, err := w.contents().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	fresh := stale.DeepCopy()
	if err := unstructured.SetNestedField(fresh.Object, "# more\n", "spec", "resources", "c.yaml"); err != nil {
		return err
	}
	if _, err := w.contents().Update(ctx, fresh, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(stale.Object, "# other\n", "spec", "resources", "c.yaml"); err != nil {
		return err
	}
	_, err = w.contents().Update(ctx, stale, metav1.UpdateOptions{})
	if err := refused(err, errors.IsConflict, "Conflict"); err != nil {
		return err
	}
	stale.SetResourceVersion("")
	_, err = w.contents().Update(ctx, stale, metav1.UpdateOptions{})
	return expect(err != nil && strings.Contains(err.Error(), "resourceVersion must be specified for an update"), "got %v", err)
}

// move changes the lifecycle, on the object or on a sub-resource of it. Controllers write drafts at the same time, so a conflict is
// met as clients meet it.
func (w *world) move(ctx context.Context, name, lifecycle string, subresource ...string) error {
	for attempt := 0; ; attempt++ {
		revision, err := w.revisions().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(revision.Object, lifecycle, "spec", "lifecycle"); err != nil {
			return err
		}
		updated, err := w.revisions().Update(ctx, revision, metav1.UpdateOptions{}, subresource...)
		if errors.IsConflict(err) && attempt < 10 {
			continue
		}
		if err != nil {
			return err
		}
		return expect(text(updated, "spec", "lifecycle") == lifecycle, "it is %s", text(updated, "spec", "lifecycle"))
	}
}

func approveRevision(ctx context.Context, w *world) error {
	name := revisionName("web", "v1")
	err := w.move(ctx, name, "Published", "approval")
	if err := expect(err != nil, "a draft was approved"); err != nil {
		return err
	}
	if err := w.move(ctx, name, "Proposed"); err != nil {
		return err
	}
	if err := expect(w.move(ctx, name, "Published") != nil, "it was published without the sub-resource"); err != nil {
		return err
	}
	if err := w.move(ctx, name, "Published", "approval"); err != nil {
		return err
	}
	revision, err := w.revisions().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect(text(revision, "spec", "revision") == "1" && revision.GetLabels()["kpt.dev/latest-revision"] == "true" &&
		text(revision, "status", "publishedBy") != "<nil>", "got %v %v", revision.Object["spec"], revision.Object["status"])
}

func protectPublished(ctx context.Context, w *world) error {
	name := revisionName("web", "v1")
	_, err := w.contents().Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"resources":{"x.yaml":"# x\n"}}}`), metav1.PatchOptions{})
	if err := expect(err != nil && strings.Contains(err.Error(), "package must be Draft"), "content: %v", err); err != nil {
		return err
	}
	err = w.revisions().Delete(ctx, name, metav1.DeleteOptions{})
	if err := refused(err, errors.IsForbidden, "Forbidden"); err != nil {
		return err
	}
	revision, err := w.revisions().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(revision.Object, "other", "spec", "packageName"); err != nil {
		return err
	}
	_, err = w.revisions().Update(ctx, revision, metav1.UpdateOptions{})
	return expect(err != nil, "the name of the package was changed")
}

func findRevisions(ctx context.Context, w *world) error {
	if _, err := w.revisions().Create(ctx, newRevision("api", "v1", initTask()), metav1.CreateOptions{}); err != nil {
		return err
	}
	edit := map[string]any{"type": "edit", "edit": map[string]any{"sourceRef": map[string]any{"name": revisionName("web", "v1")}}}
	if _, err := w.revisions().Create(ctx, newRevision("web", "v2", edit), metav1.CreateOptions{}); err != nil {
		return err
	}
	for selector, want := range map[string]int{
		"spec.packageName=web,spec.lifecycle=Draft":       1,
		"spec.repository=blueprints,spec.lifecycle=Draft": 2,
		"spec.revision=1":                                    1,
		"spec.workspaceName=v1":                              2,
		"metadata.name=" + revisionName("web", "v2"):         1,
		"spec.repository=no-such-repository,spec.revision=1": 0,
	} {
		list, err := w.revisions().List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return err
		}
		if len(list.Items) != want {
			return fmt.Errorf("%s finds %d, not %d", selector, len(list.Items), want)
		}
	}
	latest, err := w.revisions().List(ctx, metav1.ListOptions{LabelSelector: "kpt.dev/latest-revision=true"})
	if err != nil {
		return err
	}
	if len(latest.Items) != 1 {
		return fmt.Errorf("%d are the latest", len(latest.Items))
	}
	for selector, judge := range map[string]func(error) bool{
		"spec.nothing=x": errors.IsBadRequest, "spec.lifecycle=Nowhere": errors.IsBadRequest,
	} {
		_, err := w.revisions().List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err := refused(err, judge, "BadRequest for "+selector); err != nil {
			return err
		}
	}
	packages, err := w.packageResource("packages").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return expect(len(packages.Items) == 2, "%d packages", len(packages.Items))
}

func deleteRevision(ctx context.Context, w *world) error {
	name := revisionName("web", "v1")
	if err := w.revisions().Delete(ctx, revisionName("web", "v2"), metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := w.move(ctx, name, "DeletionProposed", "approval"); err != nil {
		return err
	}
	if err := w.revisions().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := w.revisions().Get(ctx, name, metav1.GetOptions{})
	return refused(err, errors.IsNotFound, "NotFound")
}
