package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
)

const listed = 25

// Lists, watches and the informers that are made of them.
var listChecks = []check{
	{"many objects to list", makeListed},
	{"pages show one state", pages},
	{"a pager lists all", pagerLists},
	{"selectors on labels and fields", selectors},
	{"a watch reports changes, and DELETED for what leaves the selection", watchChanges},
	{"a watch with sendInitialEvents and its bookmark", watchList},
	{"a watch from a version that never was reports no change", watchFromNowhere},
	{"an informer follows", informerFollows},
	{"an informer of metadata follows", metadataInformer},
	{"UntilWithSync sees a condition", untilWithSync},
}

var listedSelector = "listed=yes"

func listedMap(i int) *corev1.ConfigMap {
	object := configMap(fmt.Sprintf("listed-%02d", i), map[string]string{"i": fmt.Sprint(i)})
	object.Labels = map[string]string{"listed": "yes", "parity": []string{"even", "odd"}[i%2]}
	return object
}

func makeListed(ctx context.Context, w *world) error {
	for i := range listed {
		_, err := w.typed.CoreV1().ConfigMaps(w.namespace).Create(ctx, listedMap(i), metav1.CreateOptions{})
		if err != nil && !errors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func pages(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	first, err := maps.List(ctx, metav1.ListOptions{LabelSelector: listedSelector, Limit: 10})
	if err != nil {
		return err
	}
	if len(first.Items) != 10 || first.Continue == "" {
		return fmt.Errorf("the first page has %d items", len(first.Items))
	}
	late := listedMap(99)
	if _, err := maps.Create(ctx, late, metav1.CreateOptions{}); err != nil {
		return err
	}
	defer func() { _ = maps.Delete(ctx, late.Name, metav1.DeleteOptions{}) }()
	seen := len(first.Items)
	for next := first.Continue; next != ""; {
		page, err := maps.List(ctx, metav1.ListOptions{LabelSelector: listedSelector, Limit: 10, Continue: next})
		if err != nil {
			return err
		}
		if page.ResourceVersion != first.ResourceVersion {
			return fmt.Errorf("the pages are of versions %s and %s", first.ResourceVersion, page.ResourceVersion)
		}
		seen += len(page.Items)
		next = page.Continue
	}
	if err := expect(seen == listed, "%d of %d items", seen, listed); err != nil {
		return err
	}
	_, err = maps.List(ctx, metav1.ListOptions{Limit: 10, Continue: "no such token"})
	return refused(err, func(err error) bool { return errors.IsBadRequest(err) || errors.IsResourceExpired(err) }, "BadRequest or Expired")
}

func pagerLists(ctx context.Context, w *world) error {
	p := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return w.typed.CoreV1().ConfigMaps(w.namespace).List(ctx, options)
	}))
	p.PageSize = 4
	count := 0
	err := p.EachListItem(ctx, metav1.ListOptions{LabelSelector: listedSelector}, func(runtime.Object) error {
		count++
		return nil
	})
	if err != nil {
		return err
	}
	return expect(count == listed, "%d items", count)
}

func selectors(ctx context.Context, w *world) error {
	for options, want := range map[[2]string]int{
		{"parity in (odd),listed", ""}:                         12,
		{"listed,parity!=odd", "metadata.name!=listed-00"}:     12,
		{"", "metadata.name=listed-03"}:                        1,
		{"!listed", "metadata.name=listed-03"}:                 0,
		{"listed=yes", "metadata.namespace=other"}:             0,
		{"listed notin (no),parity=even", "metadata.name!=xx"}: 13,
	} {
		list, err := w.typed.CoreV1().ConfigMaps(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: options[0], FieldSelector: options[1]})
		if err != nil {
			return err
		}
		got := 0
		for _, item := range list.Items {
			if options[0] == "!listed" || item.Labels["listed"] == "yes" {
				got++
			}
		}
		if got != want {
			return fmt.Errorf("%v finds %d, not %d", options, got, want)
		}
	}
	_, err := w.typed.CoreV1().ConfigMaps(w.namespace).List(ctx, metav1.ListOptions{FieldSelector: "data.x=y"})
	return refused(err, errors.IsBadRequest, "BadRequest")
}

// next waits for one event of a watch.
func next(ctx context.Context, w watch.Interface) (watch.Event, error) {
	select {
	case event, open := <-w.ResultChan():
		if !open {
			return event, fmt.Errorf("the watch ended")
		}
		return event, nil
	case <-time.After(10 * time.Second):
		return watch.Event{}, fmt.Errorf("no event in 10 seconds")
	case <-ctx.Done():
		return watch.Event{}, ctx.Err()
	}
}

func watchChanges(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "watched=yes"})
	if err != nil {
		return err
	}
	watcher, err := maps.Watch(ctx, metav1.ListOptions{
		LabelSelector: "watched=yes", ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true,
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	object := configMap("watched", nil)
	object.Labels = map[string]string{"watched": "yes"}
	change := func(patch string) error {
		_, err := maps.Patch(ctx, "watched", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	steps := []struct {
		do   func() error
		want watch.EventType
	}{
		{func() error { _, err := maps.Create(ctx, object, metav1.CreateOptions{}); return err }, watch.Added},
		{func() error { return change(`{"data":{"a":"b"}}`) }, watch.Modified},
		{func() error { return change(`{"metadata":{"labels":{"watched":"no"}}}`) }, watch.Deleted},
		{func() error { return change(`{"metadata":{"labels":{"watched":"yes"}}}`) }, watch.Added},
		{func() error { return maps.Delete(ctx, "watched", metav1.DeleteOptions{}) }, watch.Deleted},
	}
	for i, step := range steps {
		if err := step.do(); err != nil {
			return err
		}
		for {
			event, err := next(ctx, watcher)
			if err != nil {
				return fmt.Errorf("step %d: %w", i+1, err)
			}
			if event.Type == watch.Bookmark {
				continue
			}
			if event.Type != step.want {
				return fmt.Errorf("step %d: %s instead of %s", i+1, event.Type, step.want)
			}
			break
		}
	}
	return nil
}

func watchList(ctx context.Context, w *world) error {
	initial := true
	watcher, err := w.typed.CoreV1().ConfigMaps(w.namespace).Watch(ctx, metav1.ListOptions{
		LabelSelector: listedSelector, AllowWatchBookmarks: true, SendInitialEvents: &initial,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for count := 0; ; count++ {
		event, err := next(ctx, watcher)
		if err != nil {
			return fmt.Errorf("after %d events: %w", count, err)
		}
		if event.Type == watch.Added {
			continue
		}
		object, ok := event.Object.(*corev1.ConfigMap)
		if event.Type != watch.Bookmark || !ok {
			return fmt.Errorf("%s of %T", event.Type, event.Object)
		}
		if object.Annotations[metav1.InitialEventsAnnotationKey] != "true" || object.ResourceVersion == "" {
			return fmt.Errorf("the bookmark has %+v", object.ObjectMeta)
		}
		return expect(count == listed, "%d of %d initial events", count, listed)
	}
}

func watchFromNowhere(ctx context.Context, w *world) error {
	watcher, err := w.typed.CoreV1().ConfigMaps(w.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: "999999999999"})
	if err == nil {
		defer watcher.Stop()
		if w.inCluster {
			return silent(watcher)
		}
		event, nextErr := next(ctx, watcher)
		if nextErr != nil {
			return nextErr
		}
		if event.Type != watch.Error {
			return fmt.Errorf("%s", event.Type)
		}
		err = errors.FromObject(event.Object)
	}
	return refused(err, func(err error) bool {
		return errors.IsResourceExpired(err) || errors.IsGone(err) || errors.IsTimeout(err)
	}, "Expired or Timeout")
}

// silent expects no event: a kube-apiserver opens such a watch and waits for the version.
func silent(watcher watch.Interface) error {
	select {
	case event, open := <-watcher.ResultChan():
		if open && event.Type != watch.Error {
			return fmt.Errorf("%s", event.Type)
		}
	case <-time.After(2 * time.Second):
	}
	return nil
}

func informerFollows(ctx context.Context, w *world) error {
	factory := informers.NewSharedInformerFactoryWithOptions(w.typed, 0, informers.WithNamespace(w.namespace))
	informer := factory.Core().V1().ConfigMaps()
	return follow(ctx, w, informer.Informer(), factory.Start)
}

func metadataInformer(ctx context.Context, w *world) error {
	client, err := metadata.NewForConfig(w.config)
	if err != nil {
		return err
	}
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, w.namespace, nil)
	informer := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps"))
	return follow(ctx, w, informer.Informer(), factory.Start)
}

// follow starts an informer of ConfigMaps and expects that it learns of what is there, of what comes and of what goes.
func follow(ctx context.Context, w *world, informer cache.SharedIndexInformer, start func(<-chan struct{})) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan string, 1000)
	report := func(what string, object any) {
		if meta, ok := object.(metav1.Object); ok && meta.GetName() == "followed" {
			events <- what
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { report("added", object) },
		UpdateFunc: func(_, object any) { report("updated", object) },
		DeleteFunc: func(object any) { report("deleted", object) },
	})
	if err != nil {
		return err
	}
	start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the cache does not fill")
	}
	if count := len(informer.GetStore().ListKeys()); count < listed {
		return fmt.Errorf("the cache has %d objects", count)
	}
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	return all(
		func() error {
			_, err := maps.Create(ctx, configMap("followed", nil), metav1.CreateOptions{})
			return err
		},
		func() error { return awaitEvent(ctx, events, "added") },
		func() error {
			_, err := maps.Patch(ctx, "followed", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
			return err
		},
		func() error { return awaitEvent(ctx, events, "updated") },
		func() error { return maps.Delete(ctx, "followed", metav1.DeleteOptions{}) },
		func() error { return awaitEvent(ctx, events, "deleted") },
	)
}

func awaitEvent(ctx context.Context, events <-chan string, want string) error {
	select {
	case got := <-events:
		return expect(got == want, "%s instead of %s", got, want)
	case <-time.After(10 * time.Second):
		return fmt.Errorf("no event %s", want)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func untilWithSync(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	if _, err := maps.Create(ctx, configMap("awaited", map[string]string{}), metav1.CreateOptions{}); err != nil {
		return err
	}
	source := cache.NewListWatchFromClient(w.typed.CoreV1().RESTClient(), "configmaps", w.namespace,
		fields.OneTermEqualSelector("metadata.name", "awaited"))
	go func() {
		time.Sleep(200 * time.Millisecond)
		_, _ = maps.Patch(ctx, "awaited", types.MergePatchType, []byte(`{"data":{"done":"yes"}}`), metav1.PatchOptions{})
	}()
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.ConfigMap{}, nil, func(event watch.Event) (bool, error) {
		object, ok := event.Object.(*corev1.ConfigMap)
		return ok && object.Data["done"] == "yes", nil
	})
	return err
}
