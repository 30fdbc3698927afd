import { specOrMetadataChanged } from '../../../src/controller/predicates.ts';
import type { Source } from '../../../src/controller/source.ts';
import { SYSTEM_NAMESPACE } from '../../../src/resource/kinds/core/namespace.ts';
import { type Repository, repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { freezeKind } from '../../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { keyOf, type ObjectKey, type Stored } from '../../../src/resource/object/object.ts';
import type { PolicyScope } from '../../proposal/pending-revisions.ts';

/** Wakes for the repositories in which the rules of policies, or freezes, may have changed. */
export function ruledRepositories({
  sharing = () => [],
  onPolicyChange = () => () => undefined,
  systemNamespace = SYSTEM_NAMESPACE,
}: PolicyScope = {}): Source<ObjectKey> {
  return {
    start({ informer, enqueue }) {
      const repositories = informer(repositoryKind);
      const wake = (some: readonly Stored<Repository>[]) => {
        for (const key of some.map(keyOf)) for (const one of [key, ...sharing(key)]) enqueue(one);
      };
      const wakeNamespace = (namespace = '') => wake(repositories.inNamespace(namespace));
      const ends = [
        informer(packagePolicyKind).addHandler((event) => {
          if (specOrMetadataChanged(event)) wakeNamespace(event.object.metadata.namespace);
        }),
        onPolicyChange(({ namespace }) => wakeNamespace(namespace)),
        informer(freezeKind).addHandler((event) => {
          if (!specOrMetadataChanged(event)) return;
          const { namespace } = event.object.metadata;
          if (namespace === systemNamespace) wake(repositories.list());
          else wakeNamespace(namespace);
        }),
      ];
      return () => {
        for (const end of ends) end();
      };
    },
  };
}
