import { customResourceDefinitionController } from '../../../controllers/custom-resource-definition/custom-resource-definition-controller.ts';
import { eventExpiryController } from '../../../controllers/event-expiry/event-expiry-controller.ts';
import { garbageCollectionController } from '../../../controllers/garbage-collection/garbage-collection-controller.ts';
import type { OwnerMemory } from '../../../controllers/garbage-collection/sort-owners.ts';
import { namespaceController } from '../../../controllers/namespace/namespace-controller.ts';
import type { Manager } from '../../controller/manager.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { customResourceDefinitionKind } from '../../resource/kinds/apiextensions/custom-resource-definition.ts';
import { PACKAGE_KINDS } from '../../resource/kinds/index.ts';
import type { ObjectKey } from '../../resource/object/object.ts';
import { customKindsOf } from '../session/custom-kinds.ts';
import type { Session } from '../session/session.ts';

/** Controllers that maintain the objects of a server; `--until-idle` does not run them. */
export const HOUSEKEEPERS = ['custom-resource-definition', 'namespace', 'garbage-collection', 'event-expiry'] as const;

/** Owners of packages that are remembered. */
const REMEMBERED = 100_000;

/** Puts the housekeepers that are not switched off into a manager. */
export function addHousekeepers(manager: Manager, session: Session, disabled: readonly string[]): void {
  const { client, clock, registry } = session;
  const add: Readonly<Record<(typeof HOUSEKEEPERS)[number], () => unknown>> = {
    'custom-resource-definition': () => {
      const kinds = customKindsOf(session);
      // This runs before any controller uses the kinds that were served before the restart.
      const start = async () => kinds.restore((await client.list(customResourceDefinitionKind)).items);
      manager.add({ name: 'custom-kinds', start });
      manager.addController(customResourceDefinitionController({ client, clock, kinds }));
    },
    namespace: () => manager.addController(namespaceController({ client, clock, registry })),
    'garbage-collection': () =>
      manager.addController(
        garbageCollectionController({
          ...{ client, clock, registry },
          mayBeHidden: (kind, key) => PACKAGE_KINDS.includes(kind) && !isOpen(session, key),
          memory: ownerMemory(session),
        }),
      ),
    'event-expiry': () => manager.addController(eventExpiryController({ client, clock })),
  };
  for (const name of HOUSEKEEPERS) if (!disabled.includes(name)) add[name]();
}

/** Owners of packages: a server that opens a repository of another server must not treat all its drafts as orphaned. */
function ownerMemory({ objects }: Session): OwnerMemory {
  const notes = objects.database?.notes('owners');
  if (notes === undefined) throw new SluiceError('Unsupported', 'a cluster collects its garbage itself');
  const packages = new Set(PACKAGE_KINDS.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`));
  return {
    isFor: ({ apiVersion, kind }) => packages.has(`${apiVersion} ${kind}`),
    knows: (uid) => notes.get(uid) !== undefined,
    remember: (uid) => {
      notes.set(uid, '');
      // The packages of a forgotten owner stay, and an existing owner is added again.
      for (const [oldest] of notes.entries()) {
        if (notes.size <= REMEMBERED) break;
        notes.delete(oldest);
      }
    },
  };
}

/**
 * True if the repository of a package is open: names of packages begin with the name of their repository, which has no dots.
 */
function isOpen({ store }: Session, { namespace, name }: ObjectKey): boolean {
  const [own] = name.split('.', 1);
  return store.repositories().some((one) => one.repository === own && one.namespace === (namespace ?? one.namespace));
}
