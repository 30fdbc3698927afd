import type { InformerEvent } from '../../src/controller/informer-store.ts';
import { specOrMetadataChanged } from '../../src/controller/predicates.ts';
import { type Source, toObject, watchKind } from '../../src/controller/source.ts';
import type { PolicyChange } from '../../src/package/store/policies/concerned-revisions.ts';
import { selectsToRestrict } from '../../src/package/store/policies/selected-packages.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { SYSTEM_NAMESPACE } from '../../src/resource/kinds/core/namespace.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { freezeKind } from '../../src/resource/kinds/sluice/freeze.ts';
import { type PackagePolicy, packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { isPending } from './readiness.ts';

/** Where policies and freezes apply, as far as that does not follow from their namespaces. */
export interface PolicyScope {
  /** Repositories of other namespaces that share the packages of one: policies of its namespace apply there too. Default: none. */
  readonly sharing?: (repository: ObjectKey) => readonly ObjectKey[];
  /** Calls the listener with every change of policies that are read from repositories; returns what ends that. Default: none. */
  readonly onPolicyChange?: (listener: (change: PolicyChange) => void) => () => void;
  /** The namespace whose freezes are in force in all. Default: `sluice-system`. */
  readonly systemNamespace?: string;
}

type Store = Pick<RevisionStore, 'find' | 'onPromotion'>;

const PENDING = 'pending';

/**
 * Wakes for a draft or proposed revision when it changes, for those that a changed policy selects or selected, for those in the scope of a
 * freeze that begins or ends, and for those of a repository that changes or is promoted. Status writes wake none.
 */
export function pendingRevisions(store: Store, scope: PolicyScope = {}): Source<ObjectKey>[] {
  const { sharing = () => [], onPolicyChange = () => () => undefined, systemNamespace = SYSTEM_NAMESPACE } = scope;
  return [
    watchKind(packageRevisionKind, {
      predicate: (event) => isPending(event.object) || (event.type === 'update' && isPending(event.old)),
      map: toObject,
    }),
    {
      start({ informer, enqueue }) {
        const revisions = informer(packageRevisionKind);
        const repositories = informer(repositoryKind);
        revisions.addIndex(PENDING, pendingIndex);
        const wakeRepository = (key: ObjectKey) => {
          for (const object of revisions.byIndex(PENDING, keyText(key))) enqueue(keyOf(object));
        };
        const wakeShared = (namespace: string) => {
          const shared = repositories.inNamespace(namespace).flatMap((repository) => sharing(keyOf(repository)));
          for (const key of new Map(shared.map((one) => [keyText(one), one])).values()) wakeRepository(key);
        };
        const isSelected = (object: Stored<PackageRevision>, policies: PolicyChange['policies']) => {
          const revision = policies === undefined ? undefined : store.find(keyText(keyOf(object)));
          if (policies === undefined || revision === undefined) return true;
          const { namespace, key } = revision;
          const repository = repositories.get({ namespace, name: key.repository });
          // Sets of variants are not compared: one may have just made the revision.
          return policies.some(({ spec: { selector } }) => selectsToRestrict(selector, revision, repository));
        };
        const wake = ({ namespace, policies }: PolicyChange) => {
          for (const object of revisions.byIndex(PENDING, namespace))
            if (isSelected(object, policies)) enqueue(keyOf(object));
          wakeShared(namespace);
        };
        const ends = [
          informer(packagePolicyKind).addHandler((event) => {
            if (specOrMetadataChanged(event)) wake(changeOf(event));
          }),
          onPolicyChange(wake),
          informer(freezeKind).addHandler((event) => {
            if (!specOrMetadataChanged(event)) return;
            const { namespace = '' } = event.object.metadata;
            if (namespace !== systemNamespace) wake({ namespace, policies: undefined });
            else for (const object of revisions.byIndex(PENDING, ALL)) enqueue(keyOf(object));
          }),
          repositories.addHandler((event) => {
            if (!specOrMetadataChanged(event)) return;
            const key = keyOf(event.object);
            for (const one of [key, ...sharing(key)]) wakeRepository(one);
          }),
          store.onPromotion((id) => {
            const [namespace = '', name = ''] = id.split('/');
            wakeRepository({ namespace, name });
          }),
        ];
        return () => {
          for (const end of ends) end();
        };
      },
    },
  ];
}

/** A change of a policy, for those that it selects and those that it selected. */
export function changeOf(event: InformerEvent<PackagePolicy>): PolicyChange {
  const { object } = event;
  const { namespace = '' } = object.metadata;
  return { namespace, policies: event.type === 'update' ? [event.old, object] : [object] };
}

const ALL = '';

/** A pending revision under all, its namespace, and the key of its repository. */
function pendingIndex(object: Stored<PackageRevision>): string[] {
  if (!isPending(object)) return [];
  const { namespace = '' } = object.metadata;
  return [ALL, namespace, keyText({ namespace, name: object.spec.repository })];
}
