import { specOrMetadataChanged } from '../../src/controller/predicates.ts';
import { type Source, toObject, toOwner, watchKind } from '../../src/controller/source.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { keyOf, type ObjectKey } from '../../src/resource/object/object.ts';

const UPSTREAM = 'package-variant-upstream';
const DOWNSTREAM = 'package-variant-downstream';
const REPOSITORY = 'package-variant-repository';

/**
 * Wakes for a variant that changes, for those of the package of a revision, for the owner of a revision, and for those of a repository that
 * is opened, registered again or promoted, or becomes ready. All but the first look up variants in an index.
 */
export function variantSources(store: Pick<RevisionStore, 'onArrival' | 'onPromotion'>): Source<ObjectKey>[] {
  return [
    watchKind(packageVariantKind, { predicate: specOrMetadataChanged, map: toObject }),
    watchKind(packageRevisionKind, { map: toOwner(packageVariantKind) }),
    {
      start({ informer, enqueue }) {
        const variants = informer(packageVariantKind);
        const text = (...parts: (string | undefined)[]) => parts.join('/');
        variants.addIndex(UPSTREAM, ({ metadata, spec }) => [
          text(metadata.namespace, spec.upstream.repo, spec.upstream.package),
        ]);
        variants.addIndex(DOWNSTREAM, ({ metadata, spec }) => [
          text(metadata.namespace, spec.downstream.repo, spec.downstream.package),
        ]);
        variants.addIndex(REPOSITORY, ({ metadata, spec }) => [
          ...new Set([spec.upstream.repo, spec.downstream.repo].map((repo) => text(metadata.namespace, repo))),
        ]);
        const wake = (index: string, value: string) => {
          for (const variant of variants.byIndex(index, value)) enqueue(keyOf(variant));
        };
        let ended = false;
        // Its revisions may be none, which no other event reports.
        store.onArrival((id) => {
          if (!ended) wake(REPOSITORY, id);
        });
        const ends = [
          informer(packageRevisionKind).addHandler((event) => {
            const { metadata, spec } = event.object;
            const place = text(metadata.namespace, spec.repository, spec.packageName);
            wake(DOWNSTREAM, place);
            // Nothing is cloned from drafts, which change frequently.
            if (isPublished(event.object) || (event.type === 'update' && isPublished(event.old))) wake(UPSTREAM, place);
          }),
          informer(repositoryKind).addHandler((event) => {
            const isReady = ({ status }: typeof event.object) => findCondition(status?.conditions, 'Ready')?.status;
            if (
              event.type === 'update' &&
              isReady(event.old) === isReady(event.object) &&
              !specOrMetadataChanged(event)
            )
              return;
            wake(REPOSITORY, text(event.object.metadata.namespace, event.object.metadata.name));
          }),
          store.onPromotion((id) => wake(REPOSITORY, id)),
          // The next variant of the package may have it now.
          variants.addHandler((event) => {
            if (event.type !== 'delete') return;
            const { metadata, spec } = event.object;
            wake(DOWNSTREAM, text(metadata.namespace, spec.downstream.repo, spec.downstream.package));
          }),
        ];
        return () => {
          ended = true;
          for (const end of ends) end();
        };
      },
    },
  ];
}

function isPublished({ spec }: PackageRevision): boolean {
  return spec.lifecycle === 'Published' || spec.lifecycle === 'DeletionProposed';
}
